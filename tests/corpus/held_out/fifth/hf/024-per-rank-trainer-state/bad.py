import logging
import os
from dataclasses import dataclass, field
from typing import Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger(__name__)


@dataclass
class Progress:
    global_step: int = 0
    epoch: int = 0
    rng: Optional[torch.Tensor] = None


@dataclass
class CheckpointArgs:
    output: str = "ckpt"
    load_path: Optional[str] = None
    every: int = 500


class StateCallback:
    def __init__(self, args: CheckpointArgs):
        self.args = args
        self.rank = dist.get_rank()

    def _path(self, folder: str) -> str:
        return os.path.join(folder, "trainer_state", f"rank{self.rank}.pt")

    def on_train_begin(self, trainer: "StepTrainer") -> None:
        if self.args.load_path is None:
            return
        path = self._path(self.args.load_path)
        if not os.path.exists(path):
            logger.warning("no trainer state at %s, only weights are restored", path)
            return
        saved = torch.load(path, map_location="cpu")
        trainer.progress = Progress(**saved)
        if trainer.progress.rng is not None:
            torch.set_rng_state(trainer.progress.rng)

    def on_step_end(self, trainer: "StepTrainer") -> None:
        p = trainer.progress
        if p.global_step % self.args.every:
            return
        path = self._path(os.path.join(self.args.output, f"step{p.global_step}"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        torch.save({"global_step": p.global_step, "epoch": p.epoch, "rng": torch.get_rng_state()}, path)


@dataclass
class StepTrainer:
    model: DDP
    optimizer: torch.optim.Optimizer
    loader: object
    max_steps: int
    callbacks: list = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)

    def train(self) -> None:
        for cb in self.callbacks:
            cb.on_train_begin(self)
        while self.progress.global_step < self.max_steps:
            for batch in self.loader:
                self.model(batch).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.progress.global_step += 1
                for cb in self.callbacks:
                    cb.on_step_end(self)
                if self.progress.global_step >= self.max_steps:
                    break
            self.progress.epoch += 1
