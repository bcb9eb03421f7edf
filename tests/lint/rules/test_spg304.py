"""SPG304: collectives that depend on what a rank sees in the file system."""

from __future__ import annotations

from tests.lint.rules.marked import agree

FILES = ("SPG101", "SPG102", "SPG304", "SPG305", "SPG401")


def test_looks_of_their_own() -> None:
    """Existence, listings and sizes, in branches and exits, through a helper."""
    assert agree(
        """
        import glob
        import os
        from pathlib import Path
        import torch.distributed as dist

        def exists(path, x):
            if os.path.exists(path):
                dist.broadcast(x, src=0)  # SPG304

        def by_pathlib(folder, x):
            if not (Path(folder) / "latest").is_file():  # SPG304
                return
            dist.all_reduce(x)

        def listed(folder, x):
            if glob.glob(folder + "/*.pt"):
                dist.barrier()  # SPG304

        def newest(folder):
            found = sorted(os.listdir(folder))
            return found[-1] if found else None

        def resume(folder, x):
            checkpoint = newest(folder)
            if checkpoint:
                dist.all_reduce(x)  # SPG304
        """,
        *FILES,
    )


def test_shared_looks_are_silent() -> None:
    """One rank looks and tells, all look and vote, or the file only changes what is printed."""
    assert agree(
        """
        import os
        import torch
        import torch.distributed as dist

        def told(path, x):
            seen = [os.path.exists(path)]
            dist.broadcast_object_list(seen, src=0)
            if seen[0]:
                dist.all_reduce(x)

        def voted(path, x):
            seen = torch.tensor(int(os.path.exists(path)))
            dist.all_reduce(seen, op=dist.ReduceOp.MIN)
            if seen.item():
                dist.all_reduce(x)

        def printed(path, x):
            if os.path.exists(path):
                print("overwriting")
            dist.all_reduce(x)

        def vouched(path, x):
            there = os.path.exists(path)  # spmdguard: uniform
            if there:
                dist.all_reduce(x)
        """,
        *FILES,
    )
