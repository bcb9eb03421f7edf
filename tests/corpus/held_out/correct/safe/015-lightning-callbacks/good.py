"""Callbacks that need several ranks to agree, and the ones that do not."""
import os
import shutil
import time
from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_only
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SharedRunDirectory(Callback):
    """Rank zero names the folder of the run; the name is handed to all."""

    def __init__(self, root):
        self.root = Path(root)
        self.path = None

    def setup(self, trainer, pl_module, stage):
        if self.path is not None:
            return
        name = time.strftime("%Y%m%d-%H%M%S") if trainer.is_global_zero else ""
        name = trainer.strategy.broadcast(name, src=0)
        self.path = self.root / name
        if trainer.is_global_zero:
            self.path.mkdir(parents=True, exist_ok=True)
        trainer.strategy.barrier("run-directory")


class StopOnDiskPressure(Callback):
    def __init__(self, folder, min_free_gb, every=200):
        self.folder, self.min_free, self.every = folder, min_free_gb * 2**30, every

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if (trainer.global_step + 1) % self.every:
            return
        low = shutil.disk_usage(self.folder).free < self.min_free
        low = trainer.strategy.reduce_boolean_decision(low, all=False)
        trainer.should_stop = trainer.should_stop or low


class ExportAfterValidation(Callback):
    def __init__(self, run_dir: SharedRunDirectory, keep=2):
        self.run_dir, self.keep = run_dir, keep
        self.exported = []

    @rank_zero_only
    def _export(self, module, epoch):
        target = self.run_dir.path / f"weights-{epoch:04d}.pt"
        torch.save({k: v.cpu() for k, v in module.state_dict().items()}, target)
        self.exported.append(target)
        while len(self.exported) > self.keep:
            self.exported.pop(0).unlink(missing_ok=True)

    def on_validation_epoch_end(self, trainer, pl_module):
        if trainer.sanity_checking:
            return
        self._export(pl_module, trainer.current_epoch)
        trainer.strategy.barrier("weights-exported")


class SlowestRank(Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        self.t0 = time.perf_counter()

    def on_train_epoch_end(self, trainer, pl_module):
        took = torch.tensor(time.perf_counter() - self.t0, device=pl_module.device)
        worst = trainer.strategy.reduce(took, reduce_op="max")
        if trainer.is_global_zero:
            print(f"epoch {trainer.current_epoch}: slowest rank took {worst.item():.1f} s")


class Regressor(pl.LightningModule):
    def __init__(self, width=128):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.net(x), y), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def make_loader(n, seed, shuffle=False):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 16, generator=g)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=64, shuffle=shuffle)


def main():
    pl.seed_everything(5)
    run_dir = SharedRunDirectory(os.environ.get("RUNS", "runs"))
    trainer = pl.Trainer(
        accelerator="auto", devices="auto", strategy="ddp", max_epochs=20, enable_checkpointing=False,
        callbacks=[run_dir, StopOnDiskPressure(".", min_free_gb=5), ExportAfterValidation(run_dir), SlowestRank()])
    trainer.fit(Regressor(), make_loader(20000, 0, shuffle=True), make_loader(2000, 1))


if __name__ == "__main__":
    main()
