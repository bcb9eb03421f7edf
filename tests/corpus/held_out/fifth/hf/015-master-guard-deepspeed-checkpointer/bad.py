import logging
import os

import deepspeed
import torch
import torch.distributed as dist

logger = logging.getLogger(__name__)


class Checkpointer:
    collective = False

    def __init__(self, folder: str):
        self.folder = folder

    def save(self, epoch: int, trainer: "EpochTrainer") -> None:
        os.makedirs(self.folder, exist_ok=True)
        state = {"model": trainer.engine.module.state_dict(), "epoch": epoch}
        torch.save(state, os.path.join(self.folder, f"epoch{epoch}.th"))


class DeepspeedCheckpointer(Checkpointer):
    collective = True

    def save(self, epoch: int, trainer: "EpochTrainer") -> None:
        client = {"epoch": epoch, "best": trainer.best}
        trainer.engine.save_checkpoint(self.folder, tag=f"epoch{epoch}", client_state=client)


class EpochTrainer:
    def __init__(self, engine, loader, checkpointer: Checkpointer, num_epochs: int):
        self.engine = engine
        self.loader = loader
        self.checkpointer = checkpointer
        self.num_epochs = num_epochs
        self.best = float("inf")
        self._master = dist.get_rank() == 0

    def _peak_memory(self) -> float:
        mb = torch.tensor([torch.cuda.max_memory_allocated() / 2**20], device=self.engine.device)
        dist.all_reduce(mb, op=dist.ReduceOp.MAX)
        return mb.item()

    def _epoch(self) -> float:
        total = torch.zeros(1, device=self.engine.device)
        for batch in self.loader:
            loss = self.engine(**{k: v.to(self.engine.device) for k, v in batch.items()})
            self.engine.backward(loss)
            self.engine.step()
            total += loss.detach()
        dist.all_reduce(total, op=dist.ReduceOp.AVG)
        return total.item() / len(self.loader)

    def train(self) -> None:
        for epoch in range(self.num_epochs):
            loss = self._epoch()
            self.best = min(self.best, loss)
            if self._master and self.checkpointer is not None:
                self.checkpointer.save(epoch, self)
            memory = self._peak_memory()
            logger.info("epoch %d loss %.4f peak %.0f MiB", epoch, loss, memory)


def run(model, dataset, config: dict, folder: str) -> None:
    deepspeed.init_distributed()
    engine, _, loader, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), training_data=dataset, config=config
    )
    EpochTrainer(engine, loader, DeepspeedCheckpointer(folder), num_epochs=3).train()
