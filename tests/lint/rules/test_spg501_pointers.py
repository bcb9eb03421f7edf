"""SPG501: pointers ahead of the checkpoint that they name, and old ones that go before a sharded save."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_pointers_ahead_of_what_they_name() -> None:
    """The file that names the newest checkpoint is moved before the checkpoint has its name, or is written at all."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def renamed(root, state, step):
            work, final = os.path.join(root, f"{step}.tmp"), os.path.join(root, f"step-{step}")
            dcp.save(state, checkpoint_id=work)
            if dist.get_rank() == 0:
                with open(os.path.join(root, "latest.txt"), "w") as f:  # SPG501
                    f.write(final)
                os.rename(work, final)
            dist.barrier()

        class Store:
            def __init__(self, root):
                self.root = Path(root)

            def point_at(self, name):
                fresh = self.root / "LATEST.new"
                fresh.write_text(name)
                os.replace(fresh, self.root / "LATEST")  # SPG501

            def move(self, work, name):
                work.rename(self.root / name)

            def put(self, state, step):
                work = self.root / f"{step}.part"
                dcp.save(state, checkpoint_id=str(work))
                if dist.get_rank() == 0:
                    self.point_at(str(step))
                    self.move(work, str(step))
                dist.barrier()

        def linked(root, state, step):
            if dist.get_rank() == 0:
                os.symlink(f"{root}/{step}.pt", f"{root}/latest")  # SPG501
                torch.save(state, f"{root}/{step}.pt")
            dist.barrier()

        def by_number(root, state, step):
            if dist.get_rank() == 0:
                Path(root, "last_step").write_text(str(step))  # SPG501
            dcp.save(state, checkpoint_id=f"{root}/step-{step}")
        """,
        "SPG501",
    )


def test_pointers_behind_what_they_name() -> None:
    """The checkpoint first, marks within the folder that is moved, and pointers to another one are silent."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def renamed(root, state, step):
            work, final = os.path.join(root, f"{step}.tmp"), os.path.join(root, f"step-{step}")
            dcp.save(state, checkpoint_id=work)
            if dist.get_rank() == 0:
                os.rename(work, final)
                with open(os.path.join(root, "latest.txt"), "w") as f:
                    f.write(final)
            dist.barrier()

        def marked_within(root, state, step):
            work, final = os.path.join(root, f"{step}.tmp"), os.path.join(root, f"step-{step}")
            dcp.save(state, checkpoint_id=work)
            if dist.get_rank() == 0:
                with open(os.path.join(work, "COMPLETE"), "w") as f:
                    f.write("yes")
                os.rename(work, final)
            dist.barrier()

        def previous(root, state, step, before):
            if dist.get_rank() == 0:
                Path(root, "latest").write_text(before)
                torch.save(state, f"{root}/{step}.pt")
            dist.barrier()

        def either(root, state, step, again):
            if dist.get_rank() == 0:
                if again:
                    Path(root, "latest").write_text(str(step))
                else:
                    torch.save(state, f"{root}/{step}.pt")
            dist.barrier()

        def more(root, state, average, step):
            if dist.get_rank() == 0:
                torch.save(state, f"{root}/{step}.pt")
                Path(root, "latest").write_text(str(step))
                torch.save(average, f"{root}/average-{step}.pt")
            dist.barrier()
        """,
        "SPG501",
    )


ROTATION = """
import os
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from spmdguard import is_main_process, try_or_defer

ROOT = Path("checkpoints")
"""


def test_old_ones_that_go_before_all_have_saved() -> None:
    """Of a sharded save into a working folder that is renamed, too: what was there is removed before."""
    assert agree(
        ROTATION
        + """
def clear(keep):
    for old in ROOT.glob("epoch-*"):
        if old.name != keep:
            shutil.rmtree(old)  # SPG501

def save(state, epoch):
    name, work = f"epoch-{epoch}", ROOT / "unfinished"
    if is_main_process():
        try_or_defer(clear, name)
    dist.barrier()
    dcp.save(state, checkpoint_id=str(work))
    if is_main_process():
        try_or_defer(work.rename, ROOT / name)
    dist.barrier()

def in_place(root, state, step):
    if dist.get_rank() == 0:
        for name in os.listdir(root):
            shutil.rmtree(os.path.join(root, name))  # SPG501
    dist.barrier()
    dcp.save(state, checkpoint_id=os.path.join(root, str(step)))
""",
        "SPG501",
    )


def test_old_ones_that_are_spared() -> None:
    """The last complete one is kept, unfinished ones alone go, or the removal comes behind the save: silent."""
    assert agree(
        ROTATION
        + """
def behind(state, epoch):
    name, work = f"epoch-{epoch}", ROOT / "unfinished"
    dcp.save(state, checkpoint_id=str(work))
    if dist.get_rank() == 0:
        work.rename(ROOT / name)
        for old in ROOT.glob("epoch-*"):
            if old.name != name:
                shutil.rmtree(old)
    dist.barrier()

def last_kept(state, epoch, last):
    work = ROOT / "unfinished"
    if dist.get_rank() == 0:
        for old in ROOT.glob("epoch-*"):
            if old.name != last:
                shutil.rmtree(old)
    dist.barrier()
    dcp.save(state, checkpoint_id=str(work))
    if dist.get_rank() == 0:
        work.rename(ROOT / f"epoch-{epoch}")
    dist.barrier()

def last_passed_over(state, epoch, last):
    if dist.get_rank() == 0:
        for old in ROOT.iterdir():
            if old.name == last:
                continue
            shutil.rmtree(old)
    dist.barrier()
    dcp.save(state, checkpoint_id=str(ROOT / f"epoch-{epoch}"))

def left_over(state, epoch):
    work = ROOT / f"{epoch}.tmp"
    if dist.get_rank() == 0:
        for old in ROOT.glob("*.tmp"):
            shutil.rmtree(old)
    dist.barrier()
    dcp.save(state, checkpoint_id=str(work))
    if dist.get_rank() == 0:
        work.rename(ROOT / f"epoch-{epoch}")
    dist.barrier()

def left_over_by_name(root, state, epoch):
    work = os.path.join(root, f"{epoch}.tmp")
    if dist.get_rank() == 0:
        for name in os.listdir(root):
            if name.endswith(".tmp"):
                shutil.rmtree(os.path.join(root, name))
    dist.barrier()
    dcp.save(state, checkpoint_id=work)
    if dist.get_rank() == 0:
        os.rename(work, os.path.join(root, f"epoch-{epoch}"))
    dist.barrier()

def newest_kept(root, state, epoch):
    if dist.get_rank() == 0:
        for name in sorted(os.listdir(root))[:-1]:
            shutil.rmtree(os.path.join(root, name))
    dist.barrier()
    dcp.save(state, checkpoint_id=os.path.join(root, str(epoch)))
""",
        "SPG501",
    )
