"""Callback that keeps the configuration beside the logs."""
import argparse
import json
import os

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader, TensorDataset


class KeepConfig(Callback):
    def __init__(self, values):
        self.values = values

    @rank_zero_only
    def on_fit_start(self, trainer, pl_module):
        folder = trainer.log_dir
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "run.json"), "w") as f:
            json.dump(self.values, f, indent=2)


class Regressor(pl.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, width), torch.nn.SiLU(), torch.nn.Linear(width, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.huber_loss(self.layers(x), y)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=2e-3)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)}


def loader(batch):
    x = torch.randn(1024, 8)
    return DataLoader(TensorDataset(x, x.norm(dim=1, keepdim=True)), batch_size=batch)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--gpus", type=int, default=2)
    args = ap.parse_args()
    trainer = pl.Trainer(
        accelerator="gpu", devices=args.gpus, strategy="ddp", max_epochs=3,
        logger=CSVLogger("logs"), callbacks=[KeepConfig(vars(args)), LearningRateMonitor()])
    trainer.fit(Regressor(args.width), loader(args.batch))


if __name__ == "__main__":
    main()
