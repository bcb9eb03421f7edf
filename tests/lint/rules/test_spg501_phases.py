"""The order of a checkpoint"s steps: markers after all parts, and what is old goes last."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG501",)


def test_markers_and_parts() -> None:
    """A file that says which checkpoint is the newest, before and after the others have written their parts."""
    assert agree(
        """
        import json
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def replaced(model, folder, step):
            rank = dist.get_rank()
            torch.save(model.state_dict(), f"{folder}/shard-{rank}.pt")
            if rank == 0:
                with open(os.path.join(folder, "latest"), "w") as f:  # SPG501
                    f.write(str(step))
            dist.barrier()

        class Store:
            def __init__(self, root):
                self.root, self.rank = Path(root), dist.get_rank()
            def part(self, state, step):
                torch.save(state, self.root / str(step) / f"{self.rank}.pt")
            def mark(self, step):
                if self.rank == 0:
                    (self.root / str(step) / "COMPLETE").touch()  # SPG501
            def save(self, state, step):
                self.part(state, step)
                self.mark(step)
                dist.barrier()

        def described(model, folder, step):
            rank = dist.get_rank()
            torch.save(model.state_dict(), f"{folder}/shard-{rank}.pt")
            if rank == 0:
                json.dump({"step": step}, open(f"{folder}/config.json", "w"))
            dist.barrier()
            if rank == 0:
                Path(folder, "latest.txt").write_text(str(step))
            dist.barrier()

        def whole(model, folder, step):
            if dist.get_rank() == 0:
                torch.save(model.state_dict(), f"{folder}/{step}.pt")
                Path(folder, "latest.txt").write_text(str(step))
            dist.barrier()

        def gathered(model, folder, step):
            rank = dist.get_rank()
            torch.save(model.state_dict(), f"{folder}/shard-{rank}.pt")
            done = [None] * dist.get_world_size()
            dist.all_gather_object(done, True)
            if rank == 0:
                Path(folder, "latest.txt").write_text(str(step))
        """,
        *RULES,
    )


def test_room_is_made_before_the_new_checkpoint_is_there() -> None:
    """By a listing, in place, by a remembered path, in a method of its own, with the whole folder."""
    assert agree(
        """
        import glob
        import os
        import shutil
        from pathlib import Path

        import torch
        import torch.distributed as dist
        from safetensors.torch import save_file

        class Rolling:
            def __init__(self, folder):
                self.folder = Path(folder)
                self.previous = None

            def by_listing(self, state, step):
                if dist.get_rank() == 0:
                    for old in self.folder.glob("*.pt"):
                        old.unlink()  # SPG501
                    torch.save(state, self.folder / f"{step}.pt")
                dist.barrier()

            def in_place(self, state):
                target = self.folder / "state.pt"
                if dist.get_rank() == 0:
                    if target.exists():
                        os.remove(target)  # SPG501
                    torch.save(state, target)
                dist.barrier()

            def remembered(self, state, step):
                path = self.folder / f"{step}.pt"
                if dist.get_rank() == 0:
                    if self.previous is not None:
                        self.previous.unlink()  # SPG501
                    save_file(state, path)
                    self.previous = path
                dist.barrier()

            def clear(self):
                for name in os.listdir(self.folder):
                    os.remove(os.path.join(self.folder, name))  # SPG501

            def cleared(self, state, step):
                if dist.get_rank() == 0:
                    self.clear()
                    torch.save(state, os.path.join(self.folder, f"{step}.pt"))
                dist.barrier()

        def folder(model, out):
            if dist.get_rank() == 0:
                shutil.rmtree(out, ignore_errors=True)  # SPG501
                os.makedirs(out)
                torch.save(model.state_dict(), os.path.join(out, "model.pt"))
            dist.barrier()
        """,
        *RULES,
    )


def test_what_is_old_goes_last_or_in_part() -> None:
    """Removed after the save, scratch files, some of many, other folders."""
    assert agree(
        """
        import glob
        import os
        import shutil
        from pathlib import Path

        import torch
        import torch.distributed as dist
        from safetensors.torch import save_file


        class Kept:
            def __init__(self, folder):
                self.folder = Path(folder)
                self.previous = None

            def last(self, state, step):
                if dist.get_rank() == 0:
                    old = list(self.folder.glob("*.pt"))
                    torch.save(state, self.folder / f"{step}.pt")
                    for path in old:
                        path.unlink()
                dist.barrier()

            def in_place(self, state):
                target = self.folder / "state.pt"
                scratch = self.folder / "state.tmp"
                if dist.get_rank() == 0:
                    scratch.unlink(missing_ok=True)
                    torch.save(state, scratch)
                    os.replace(scratch, target)
                dist.barrier()

            def swapped(self, state):
                target = self.folder / "state.pt"
                if dist.get_rank() == 0:
                    torch.save(state, "scratch.pt")
                    os.remove(target)
                    os.rename("scratch.pt", target)
                dist.barrier()

            def some(self, state, step, keep):
                if dist.get_rank() == 0:
                    for old in sorted(glob.glob(f"{self.folder}/*.pt"))[:-keep]:
                        os.remove(old)
                    torch.save(state, f"{self.folder}/{step}.pt")
                dist.barrier()

            def counted(self, state, step, keep):
                if dist.get_rank() == 0:
                    files = sorted(self.folder.glob("*.pt"))
                    while len(files) >= keep:
                        files.pop(0).unlink()
                    torch.save(state, self.folder / f"{step}.pt")
                dist.barrier()

            def logs(self, state, step):
                if dist.get_rank() == 0:
                    for old in Path("logs").glob("*.txt"):
                        old.unlink()
                    torch.save(state, self.folder / f"{step}.pt")
                dist.barrier()

            def remembered(self, state, step):
                path = self.folder / f"{step}.pt"
                if dist.get_rank() == 0:
                    torch.save(state, path)
                    if self.previous is not None:
                        self.previous.unlink()
                    self.previous = path
                dist.barrier()
        """,
        *RULES,
    )


def test_marks_of_unfinished_checkpoints() -> None:
    """A file that says that a checkpoint is unfinished, taken away before and after the others are done."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def begun(folder):
            if dist.get_rank() == 0:
                Path(folder, "INCOMPLETE").touch()
            dist.barrier()

        def too_early(model, folder):
            begun(folder)
            torch.save(model.state_dict(), f"{folder}/{dist.get_rank()}.pt")
            if dist.get_rank() == 0:
                os.remove(os.path.join(folder, "INCOMPLETE"))  # SPG501
            dist.barrier()

        class Store:
            def __init__(self, root):
                self.root, self.rank = Path(root), dist.get_rank()
            def mark(self, step):
                return self.root / f"{step}.in_progress"
            def save(self, state, step):
                torch.save(state, self.root / f"{step}-{self.rank}.pt")
                if self.rank == 0:
                    self.mark(step).unlink()  # SPG501
                dist.barrier()
            def save_in_order(self, state, step):
                torch.save(state, self.root / f"{step}-{self.rank}.pt")
                dist.barrier()
                if self.rank == 0:
                    self.mark(step).unlink()

        def stale(model, folder):
            if dist.get_rank() == 0:
                Path(folder, "INCOMPLETE").unlink(missing_ok=True)
            dist.barrier()
            torch.save(model.state_dict(), f"{folder}/{dist.get_rank()}.pt")

        def other(model, folder):
            torch.save(model.state_dict(), f"{folder}/{dist.get_rank()}.pt")
            if dist.get_rank() == 0:
                os.remove(os.path.join(folder, "notes.txt"))
            dist.barrier()
        """,
        *RULES,
    )


def test_pointers_moved_before_the_verdict() -> None:
    """A pointer that moves behind a barrier, while another rank's kept error is not known; and behind the verdict."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist
        from spmdguard import deferring, has_deferred_error, is_main_process, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def write(folder, shard):
            torch.save(shard, Path(folder) / f"{dist.get_rank()}.pt")

        def point(root, folder):
            part = Path(root) / "newest.part"
            part.write_text(folder)
            part.replace(Path(root) / "newest")

        def by_functions(root, folder, shard):
            write(folder, shard)
            dist.barrier()
            if is_main_process():
                try_or_defer(point, root, folder)  # SPG501

        def in_place(root, folder, shard):
            with deferring("write"):
                torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            dist.barrier()
            if dist.get_rank() == 0:
                with deferring("point"), open(f"{root}/latest", "w") as f:  # SPG501
                    f.write(folder)

        def without_barrier(root, folder, shard):
            with deferring("write"):
                torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            if dist.get_rank() == 0:
                with deferring("point"):
                    Path(root, "latest").write_text(folder)  # SPG501
            dist.barrier()

        def agreed(root, folder, shard):
            write(folder, shard)
            if sync_should_stop(has_deferred_error()):
                return
            if is_main_process():
                try_or_defer(point, root, folder)

        def notes(root, folder, shard):
            write(folder, shard)
            dist.barrier()
            if is_main_process():
                with deferring("notes"):
                    Path(root, "notes.txt").write_text(folder)
        """,
        *RULES,
    )
