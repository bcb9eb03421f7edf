"""SPG503: looks for what another rank makes, whose answers a rank keeps and goes by later."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODE = "SPG503"


def test_answers_that_are_kept() -> None:
    """A folder, a file, a path of pathlib that only ranks which look late find there; a flag beside a name."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist

        class Folder:
            def __init__(self, out):
                self.out, self.best = out, None
            def save(self, step):
                folder = os.path.join(self.out, str(step))
                if dist.get_rank() == 0:
                    os.makedirs(folder, exist_ok=True)
                if os.path.exists(folder):  # SPG503
                    self.best = folder
            def finish(self):
                if self.best is not None:
                    dist.barrier()

        class File:
            def __init__(self, out, model):
                self.out, self.model, self.saved = Path(out), model, False
            def save(self):
                path = self.out / "model.pt"
                if dist.get_rank() == 0:
                    torch.save(self.model.state_dict(), path)
                if path.is_file():  # SPG503
                    self.saved = True
            def finish(self, x):
                if not self.saved:
                    return
                dist.all_reduce(x)
                print(x)
            def meet(self, x):
                if self.saved:
                    dist.all_reduce(x)
        """,
        CODE,
    )


def test_answers_that_do_not_matter() -> None:
    """A barrier in between, no file of another rank, an answer that is not kept, one that decides about a print."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        class Ordered:
            def __init__(self, out):
                self.out, self.best = out, None
            def save(self, step):
                folder = os.path.join(self.out, str(step))
                if dist.get_rank() == 0:
                    os.makedirs(folder, exist_ok=True)
                dist.barrier()
                if os.path.exists(folder):
                    self.best = folder
            def finish(self):
                if self.best is not None:
                    dist.barrier()

        class Other:
            def __init__(self, out):
                self.out, self.old = out, None
            def save(self, step):
                folder = os.path.join(self.out, str(step))
                if dist.get_rank() == 0:
                    os.makedirs(folder, exist_ok=True)
                if os.path.exists(os.path.join(self.out, "first")):
                    self.old = folder
            def finish(self):
                if self.old is not None:
                    dist.barrier()

        class Printing:
            def __init__(self, out):
                self.out, self.shown = out, None
            def save(self, step):
                folder = os.path.join(self.out, str(step))
                if dist.get_rank() == 0:
                    os.makedirs(folder, exist_ok=True)
                if os.path.exists(folder):
                    print("there")
                if os.path.exists(folder):
                    self.shown = folder
            def finish(self):
                dist.barrier()
                if self.shown is not None:
                    print(self.shown)
        """,
        CODE,
    )
