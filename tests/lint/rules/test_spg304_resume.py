"""SPG304 on ranks that resume where each finds a file of its own."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree, in_files


def test_progress_that_some_ranks_begin_anew() -> None:
    """In a method, in a callback with a helper for the path, through ``pathlib``, and for the range of epochs."""
    assert agree(
        """
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Trainer:
            def __init__(self, model, folder, steps):
                self.model = DDP(model)
                self.folder, self.steps, self.step, self.epoch = folder, steps, 0, 0

            def resume(self):
                path = f"{self.folder}/state_{dist.get_rank()}.pt"
                if os.path.exists(path):  # SPG304
                    self.step = torch.load(path)["step"]

            def restore(self, local_rank):
                file = self.folder / f"epoch_{local_rank}.pt"
                if not file.is_file():  # SPG304
                    return
                saved = torch.load(file)
                self.epoch = saved["epoch"]

            def fit(self, batch):
                while self.step < self.steps:
                    self.model(batch).sum().backward()
                    self.step += 1

            def epochs(self, batch):
                for epoch in range(self.epoch, self.steps):
                    self.model(batch).sum().backward()

        class Callback:
            def __init__(self, folder):
                self.folder, self.rank = folder, dist.get_rank()

            def _path(self):
                return os.path.join(self.folder, f"rank{self.rank}.pt")

            def on_train_begin(self, runner):
                path = self._path()
                if not os.path.exists(path):  # SPG304
                    print("starting afresh")
                    return
                runner.progress.seen = torch.load(path)["seen"]

        class Runner:
            def run(self, model: DDP, batch):
                while self.progress.seen < 100:
                    model(batch).sum().backward()
                    self.progress.seen += 1
        """,
        "SPG304",
    )


def test_progress_that_ranks_have_in_common() -> None:
    """Agreed first, told afterwards, an error where it is missing, a shared file, states that end no loop."""
    assert agree(
        """
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Trainer:
            def __init__(self, model, folder, steps, lora_rank):
                self.model = DDP(model)
                self.folder, self.steps, self.step, self.told, self.own = folder, steps, 0, 0, 0
                self.shared, self.random, self.lora_rank = 0, None, lora_rank

            def agreed(self):
                path = f"{self.folder}/state_{dist.get_rank()}.pt"
                found = torch.tensor([int(os.path.exists(path))])
                dist.all_reduce(found, op=dist.ReduceOp.MIN)
                if not found.item():
                    return
                self.step = torch.load(path)["step"]

            def told_later(self):
                path = f"{self.folder}/state_{dist.get_rank()}.pt"
                if os.path.exists(path):
                    self.told = torch.load(path)["step"]

            def needed(self):
                path = f"{self.folder}/state_{dist.get_rank()}.pt"
                if os.path.exists(path):
                    self.step = torch.load(path)["step"]
                else:
                    raise FileNotFoundError(path)

            def common(self):
                path = f"{self.folder}/adapter_{self.lora_rank}.pt"
                if os.path.exists(path):
                    self.shared = torch.load(path)["step"]

            def random_state(self):
                path = f"{self.folder}/random_{dist.get_rank()}.pt"
                if os.path.exists(path):
                    self.random = torch.load(path)
                    self.optimizer.load_state_dict(torch.load(path))

            def fit(self, batch):
                least = [self.told]
                dist.broadcast_object_list(least, src=0)
                self.told = dist.broadcast(self.told, src=0)
                while self.step < self.steps and self.told < self.steps and self.shared < self.steps:
                    self.model(batch).sum().backward()
                    self.step += 1

            def count(self):
                while self.own < self.steps:
                    self.own += 1
        """,
        "SPG304",
    )


def test_the_loop_may_stand_in_another_file(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback resumes the trainer of a file that it imports; a file that knows nothing of it is another program."""
    files = {
        "loops.py": """
import torch.distributed as dist

class Runner:
    def run(self, x):
        while self.state.step < 100:
            dist.all_reduce(x)
            self.state.step += 1
""",
        "hooks.py": """
import os
import torch
from loops import Runner

def resume(runner: Runner, local_rank):
    path = f"state_{local_rank}.pt"
    if os.path.exists(path):
        runner.state.step = torch.load(path)["step"]
""",
        "alone.py": """
import os
import torch

def resume(other, local_rank):
    path = f"state_{local_rank}.pt"
    if os.path.exists(path):
        other.state.step = torch.load(path)["step"]
""",
    }
    monkeypatch.chdir(str(tmp_path))
    for name, text in files.items():
        with open(name, "w") as file:
            file.write(text)
    assert in_files(files, "SPG304") == [("hooks.py", 8, "SPG304")]
