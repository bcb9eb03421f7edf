"""SPG505: one path that every rank changes."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_constant_path() -> None:
    """A constant path written by all ranks that meet."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        RUN = Path("/data/run")

        def train(model, steps):
            for step in range(steps):
                dist.all_reduce(step)
                torch.save(model.state_dict(), RUN / "latest.pt")  # SPG505

        def text(values, total):
            dist.all_reduce(total)
            with open("/data/result.txt", "w") as out:  # SPG505
                out.write(values)
        """,
        "SPG505",
    )


def test_rename_by_all() -> None:
    """A staging folder in which the ranks write together is renamed by each of them."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def save(root, step, state):
            rank = dist.get_rank()
            staging = os.path.join(root, f"tmp-{step}")
            os.makedirs(staging, exist_ok=True)
            torch.save(state, os.path.join(staging, f"{rank}.pt"))
            dist.barrier()
            os.rename(staging, os.path.join(root, f"step-{step}"))  # SPG505
        """,
        "SPG505",
    )


def test_rotation_by_all() -> None:
    """Old checkpoints that each rank finds are removed by each of them."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def rotate(root, keep):
            dist.barrier()
            for name in sorted(os.listdir(root))[:-keep]:
                shutil.rmtree(os.path.join(root, name))  # SPG505
        """,
        "SPG505",
    )


def test_one_rank_or_own_file() -> None:
    """One rank alone, or a file for each, is silent."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def alone(model, total):
            dist.all_reduce(total)
            if dist.get_rank() == 0:
                torch.save(model.state_dict(), "/data/latest.pt")

        def own(model, total):
            dist.all_reduce(total)
            torch.save(model.state_dict(), f"/data/{dist.get_rank()}.pt")

        def early(model, total):
            dist.all_reduce(total)
            if dist.get_rank():
                return
            torch.save(model.state_dict(), "/data/latest.pt")
        """,
        "SPG505",
    )


def test_tolerant() -> None:
    """Removing what may be gone, and adding to a log, is silent."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def tidy(total):
            dist.all_reduce(total)
            shutil.rmtree("/data/cache", ignore_errors=True)

        def log(total):
            dist.all_reduce(total)
            with open("/data/log.txt", "a") as out:
                out.write("x")
        """,
        "SPG505",
    )


def test_unknown_path() -> None:
    """A path that a caller gives may be each rank's own."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def save(path, model, total):
            dist.all_reduce(total)
            torch.save(model.state_dict(), path)
        """,
        "SPG505",
    )


def test_temporary_folder() -> None:
    """A temporary folder is each process's own."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        import tempfile

        def save(model, total):
            dist.all_reduce(total)
            torch.save(model.state_dict(), os.path.join(tempfile.mkdtemp(), "x.pt"))
        """,
        "SPG505",
    )


def test_miss_parameter() -> None:
    """Known miss: a path that every caller makes the same, in a function of its own."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def save(where, model):
            torch.save(model.state_dict(), where)
        """,
        "SPG505",
    )


def test_folders_made_by_every_rank() -> None:
    """A test for the folder and then its making, on every rank, with a written path or one used in common."""
    assert agree(
        """
        import os
        from pathlib import Path
        import torch
        import torch.distributed as dist

        class Task:
            def prepare(self):
                if not os.path.exists(self.out):
                    os.makedirs(self.out)  # SPG505

            def run(self, x):
                self.prepare()
                dist.all_reduce(x)
                torch.save(x, os.path.join(self.out, f"{dist.get_rank()}.pt"))

        def by_name(x):
            if not os.path.isdir("logs/run"):
                os.mkdir("logs/run")  # SPG505
            dist.all_reduce(x)

        def by_path(x):
            Path("logs/run").mkdir(parents=True)  # SPG505
            dist.all_reduce(x)
        """,
        "SPG505",
    )


def test_folders_made_with_care() -> None:
    """`exist_ok`, one rank, a folder of each rank's own, and a handler for the folder that is there."""
    assert agree(
        """
        import os
        from pathlib import Path
        import torch.distributed as dist

        def allowed(x, again):
            os.makedirs("logs/run", exist_ok=True)
            Path("logs/run").mkdir(parents=True, exist_ok=True)
            os.makedirs("logs/run", exist_ok=again)
            dist.all_reduce(x)

        def by_one(x):
            if dist.get_rank() == 0:
                os.makedirs("logs/run")
            dist.barrier()

        def own(x):
            os.makedirs(f"logs/{dist.get_rank()}")
            dist.all_reduce(x)

        def handled(x):
            try:
                os.mkdir("logs/run")
            except FileExistsError:
                pass
            dist.all_reduce(x)
        """,
        "SPG505",
    )


def test_who_comes_later_finds_the_file() -> None:
    """A file that the first ranks make and the others find behind a barrier; without the order all may write."""
    assert agree(
        """
        import os
        from contextlib import contextmanager
        import lightning as L
        import torch
        import torch.distributed as dist

        @contextmanager
        def main_goes_first():
            if dist.get_rank() != 0:
                dist.barrier()
            yield
            if dist.get_rank() == 0:
                dist.barrier()

        def own_manager(x):
            with main_goes_first():
                if not os.path.exists("cache.pt"):
                    torch.save(x, "cache.pt")
            return torch.load("cache.pt")

        def of_fabric(x):
            fabric = L.Fabric()
            with fabric.rank_zero_first():
                if not os.path.exists("cache.pt"):
                    torch.save(x, "cache.pt")
            fabric.barrier()

        def by_the_first_of_its_group(x, group):
            leads = dist.get_rank(group) == 0
            if leads:
                torch.save(x, "best.pt")
            dist.barrier()

        def all_at_once(x):
            if not os.path.exists("cache.pt"):
                torch.save(x, "cache.pt")  # SPG505
            dist.barrier()
        """,
        "SPG505",
    )


def test_a_file_that_the_first_in_turn_makes_where_it_is_missing() -> None:
    """``except FileNotFoundError`` asks whether the file is there, as ``exists`` does; without turns all come to it."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        PATH = "/tmp/shared/data.pt"

        def made():
            return torch.randn(4096, 10)

        def in_turns(local_rank):
            if dist.get_rank() > 0:
                dist.barrier()
            try:
                data = torch.load(PATH)
            except FileNotFoundError:
                data = made()
                torch.save(data, PATH)
            if dist.get_rank() == 0:
                dist.barrier()
            return data

        def all_at_once():
            try:
                data = torch.load(PATH)
            except FileNotFoundError:
                data = made()
                torch.save(data, PATH)  # SPG505
            dist.barrier()
            return data

        def whatever_is_there():
            if dist.get_rank() > 0:
                dist.barrier()
            torch.save(made(), PATH)  # SPG505
            if dist.get_rank() == 0:
                dist.barrier()
        """,
        "SPG505",
    )


def test_old_folders_removed_by_all() -> None:
    """A folder of an earlier step, of which the ranks filled others of the kind, is removed by all of them."""
    assert agree(
        """
        import os
        import shutil
        from pathlib import Path

        import torch
        import torch.distributed as dist

        class Keeper:
            def __init__(self, root, keep):
                self.root, self.keep, self.rank, self.steps = root, keep, dist.get_rank(), []

            def folder(self, step):
                return Path(self.root) / f"step_{step}"

            def save(self, state, progress):
                torch.save(state, self.folder(progress["step"]) / f"rank_{self.rank}.pt")
                self.steps.append(progress["step"])
                dist.barrier()
                while len(self.steps) > self.keep:
                    old = self.folder(self.steps.pop(0))
                    if old.exists():
                        shutil.rmtree(old)  # SPG505

        def by_number(state, root, steps):
            for step in range(steps):
                if dist.get_rank() == 0:
                    torch.save(state, os.path.join(root, f"epoch-{step}", "model.pt"))
                dist.barrier()
                shutil.rmtree(os.path.join(root, f"epoch-{step - 3}"))  # SPG505

        def by_one(state, root, steps):
            rank = dist.get_rank()
            for step in range(steps):
                torch.save(state, os.path.join(root, f"epoch-{step}", f"{rank}.pt"))
                dist.barrier()
                if rank == 0:
                    shutil.rmtree(os.path.join(root, f"epoch-{step - 3}"))

        def one_file(state, root, step, last):
            if dist.get_rank() == 0:
                torch.save(state, f"{root}/step_{step}.pt")
            dist.barrier()
            if os.path.exists(f"{root}/step_{last}.pt"):
                os.remove(f"{root}/step_{last}.pt")  # SPG505

        def by_name_alone(state, root, step, last):
            torch.save(state, f"{root}/{step}/rank{dist.get_rank()}.pt")
            dist.barrier()
            shutil.rmtree(f"{root}/{last}")  # SPG505

        def elsewhere(state, root, cache, steps):
            rank = dist.get_rank()
            for step in range(steps):
                torch.save(state, os.path.join(root, f"epoch-{step}", f"{rank}.pt"))
                dist.barrier()
                shutil.rmtree(os.path.join(cache, f"epoch-{step - 3}"))

        def its_own(state, root, steps):
            rank = dist.get_rank()
            for step in range(steps):
                torch.save(state, os.path.join(root, f"rank-{rank}", f"epoch-{step}", f"{rank}.pt"))
                dist.barrier()
                shutil.rmtree(os.path.join(root, f"rank-{rank}", f"epoch-{step - 3}"))
        """,
        "SPG505",
    )


def test_deferred_writes() -> None:
    """A deferral keeps an error for later; of several ranks that write one file it says nothing."""
    assert agree(
        """
        import json
        import os

        import torch
        import torch.distributed as dist
        import spmdguard

        def index(folder, step):
            with open(os.path.join(folder, "index.json"), "w") as f:  # SPG505
                json.dump({"step": step}, f)

        def save(folder, shard, step):
            if spmdguard.is_main_process():
                spmdguard.try_or_defer(os.makedirs, folder, exist_ok=True)
            dist.barrier()
            spmdguard.try_or_defer(torch.save, shard, os.path.join(folder, f"{dist.get_rank()}.pt"))
            spmdguard.try_or_defer(index, folder, step)
            dist.barrier()

        class Store:
            def __init__(self, folder):
                self.folder = folder

            def put(self, shard, step):
                with spmdguard.deferring("save"):
                    torch.save(shard, f"{self.folder}/part-{dist.get_rank()}.pt")
                    (self.folder / "readme.txt").write_text(str(step))
                    torch.save({"step": step}, f"{self.folder}/meta.pt")  # SPG505
                dist.barrier()

        def by_one(folder, shard, step):
            spmdguard.try_or_defer(torch.save, shard, os.path.join(folder, f"{dist.get_rank()}.pt"))
            dist.barrier()
            if spmdguard.is_main_process():
                spmdguard.try_or_defer(index, folder, step)
            dist.barrier()

        def own_folder(folder, step):
            spmdguard.try_or_defer(index, os.path.join(folder, str(dist.get_rank())), step)
            dist.barrier()

        def removed(folder, shard):
            spmdguard.try_or_defer(torch.save, shard, os.path.join(folder, f"{dist.get_rank()}.pt"))
            spmdguard.try_or_defer(os.remove, os.path.join(folder, "old.pt"))
            dist.barrier()
        """,
        "SPG505",
    )
