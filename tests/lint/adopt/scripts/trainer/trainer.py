"""A trainer class in a file of its own."""

import os

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    """Owns the model, the loop and the snapshots."""

    def __init__(self, model, optimizer, data, folder):
        self.rank = int(os.environ["RANK"])
        self.model = DDP(model)
        self.optimizer = optimizer
        self.data = data
        self.folder = folder

    def _run_batch(self, batch):
        self.optimizer.zero_grad()
        loss = self.model(batch).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        for index, batch in enumerate(self.data):
            loss = self._run_batch(batch)
            if self.rank == 0 and index == 0:
                print(f"epoch {epoch}: {loss:.4f}", flush=True)

    def _save_snapshot(self, epoch):
        snapshot = {"model": self.model.module.state_dict(), "epoch": epoch}
        if os.environ.get("FAIL_AT") == str(epoch):
            raise OSError("no space left")
        torch.save(snapshot, os.path.join(self.folder, "snapshot.pt"))

    def train(self, num_epochs):
        for epoch in range(num_epochs):
            self._run_epoch(epoch)
            if self.rank == 0:
                self._save_snapshot(epoch)
