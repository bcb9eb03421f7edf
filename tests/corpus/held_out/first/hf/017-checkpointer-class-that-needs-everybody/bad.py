from abc import ABC, abstractmethod
from pathlib import Path
from typing import Optional

import deepspeed
import torch
import torch.distributed as dist


class Checkpointer(ABC):
    def __init__(self, folder: str):
        self.folder = Path(folder)

    @abstractmethod
    def store(self, trainer: "EpochTrainer", epoch: int) -> None:
        ...


class PlainCheckpointer(Checkpointer):
    def store(self, trainer, epoch):
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.save(trainer.engine.module.state_dict(), self.folder / f"{epoch}.th")


class EngineCheckpointer(Checkpointer):
    def store(self, trainer, epoch):
        trainer.engine.save_checkpoint(str(self.folder), tag=f"epoch_{epoch}")


class EpochTrainer:
    def __init__(self, engine, checkpointer: Optional[Checkpointer] = None, epochs: int = 3):
        self.engine = engine
        self.epochs = epochs
        self._checkpointer = checkpointer
        self._master = dist.get_rank() == 0

    def batches(self, epoch):
        gen = torch.Generator().manual_seed(31 * epoch + dist.get_rank())
        for _ in range(20):
            yield torch.randn(8, 64, generator=gen).to(self.engine.device)

    def peak_memory(self):
        value = torch.tensor([torch.cuda.max_memory_allocated()], device=self.engine.device)
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return value.item()

    def train(self):
        for epoch in range(self.epochs):
            for x in self.batches(epoch):
                loss = (self.engine(x) - x).abs().mean()
                self.engine.backward(loss)
                self.engine.step()
            if self._master and self._checkpointer is not None:
                self._checkpointer.store(self, epoch)
            memory = self.peak_memory()
            if self._master:
                print(f"epoch {epoch}: {memory / 2**20:.0f} MiB")


def main():
    deepspeed.init_distributed()
    net = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ELU(), torch.nn.Linear(16, 64))
    engine, *_ = deepspeed.initialize(
        model=net,
        model_parameters=net.parameters(),
        config={
            "train_micro_batch_size_per_gpu": 8,
            "zero_optimization": {"stage": 1},
            "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
        },
    )
    EpochTrainer(engine, EngineCheckpointer("runs/auto")).train()


if __name__ == "__main__":
    main()
