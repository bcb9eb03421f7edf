import os
from pathlib import Path

import deepspeed
import torch


class EngineCheckpointer:
    def __init__(self, directory, keep=2):
        self.directory = Path(directory)
        self.keep = keep
        self.saved = []

    def save(self, trainer):
        tag = f"epoch_{trainer.epoch}"
        trainer.engine.save_checkpoint(str(self.directory), tag=tag, client_state={"epoch": trainer.epoch})
        self.saved.append(tag)


class GradientTrainer:
    def __init__(self, model, config, loader, checkpointer=None):
        deepspeed.init_distributed()
        self.rank = torch.distributed.get_rank()
        self.master = self.rank == 0
        self.engine, _, _, _ = deepspeed.initialize(
            model=model, model_parameters=model.parameters(), config=config
        )
        self.loader = loader
        self.checkpointer = checkpointer
        self.epoch = 0

    def peak_memory(self):
        peak = torch.tensor([torch.cuda.max_memory_allocated()], device=self.engine.device)
        torch.distributed.all_reduce(peak, op=torch.distributed.ReduceOp.MAX)
        return peak.item() / 2**20

    def train_epoch(self):
        for batch in self.loader:
            loss = self.engine(**{k: v.to(self.engine.device) for k, v in batch.items()})["loss"]
            self.engine.backward(loss)
            self.engine.step()

    def train(self, epochs):
        for self.epoch in range(epochs):
            self.train_epoch()
            if self.checkpointer is not None:
                self.checkpointer.save(self)
            peak = self.peak_memory()
            if self.master:
                print(f"epoch {self.epoch} peak {peak:.0f} MiB")


def run(model, config, loader):
    out = os.environ.get("SERIALIZATION_DIR", "out")
    GradientTrainer(model, config, loader, EngineCheckpointer(out)).train(10)
