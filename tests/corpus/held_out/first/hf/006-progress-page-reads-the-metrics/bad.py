import csv
import time
from pathlib import Path

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback


class CsvHistory(Callback):
    """One line per validation epoch, whatever logger is in use."""

    columns = ("epoch", "seconds", "train_loss", "val_loss", "val_oks")

    def __init__(self, path):
        self.path = Path(path)
        self.started = time.monotonic()

    def on_validation_epoch_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            metrics = trainer.callback_metrics
            row = {
                "epoch": trainer.current_epoch,
                "seconds": round(time.monotonic() - self.started, 1),
                **{k: float(v) for k, v in metrics.items() if k in self.columns},
            }
            new = not self.path.exists()
            with self.path.open("a", newline="") as f:
                writer = csv.DictWriter(f, self.columns)
                if new:
                    writer.writeheader()
                writer.writerow(row)


class KeypointModel(L.LightningModule):
    def __init__(self, points=13, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, points, 1))

    def _loss(self, batch):
        image, maps = batch
        return torch.nn.functional.mse_loss(self.net(image), maps)

    def training_step(self, batch, idx):
        loss = self._loss(batch)
        self.log("train_loss", loss, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, idx):
        loss = self._loss(batch)
        self.log("val_loss", loss, sync_dist=True)
        self.log("val_oks", torch.exp(-10 * loss), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def build_trainer(out, devices):
    Path(out).mkdir(parents=True, exist_ok=True)
    return L.Trainer(devices=devices, strategy="ddp", max_epochs=50,
                     default_root_dir=out, callbacks=[CsvHistory(Path(out) / "history.csv")])
