import os

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, count, length=128):
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        clean = torch.sin(torch.linspace(0, 6.28 * (1 + i % 5), self.length))
        return clean + 0.3 * torch.randn(self.length, generator=gen), clean


class Denoiser(pl.LightningModule):
    def __init__(self, hidden=32, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv1d(1, hidden, 9, padding=4), nn.GELU(), nn.Conv1d(hidden, 1, 9, padding=4))

    def forward(self, noisy):
        return self.net(noisy[:, None])[:, 0]

    def training_step(self, batch, batch_idx):
        noisy, clean = batch
        loss = nn.functional.l1_loss(self(noisy), clean)
        self.log("train/loss", loss, rank_zero_only=True)
        return loss

    def validation_step(self, batch, batch_idx):
        noisy, clean = batch
        loss = nn.functional.l1_loss(self(noisy), clean)
        self.log("val/loss", loss, on_epoch=True, prog_bar=True, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main():
    pl.seed_everything(3)
    keep = ModelCheckpoint(
        dirpath=os.environ.get("CKPT_DIR", "ckpt"),
        monitor="val/loss",
        save_top_k=3,
        filename="{epoch}-best",
    )
    trainer = pl.Trainer(accelerator="gpu", devices=-1, strategy="ddp", max_epochs=30, callbacks=[keep])
    trainer.fit(
        Denoiser(),
        DataLoader(Signals(4000), batch_size=64, num_workers=4, shuffle=True),
        DataLoader(Signals(401), batch_size=64, num_workers=4),
    )


if __name__ == "__main__":
    main()
