import lightning.pytorch as pl
import torch
from torch import nn


class Autoencoder(pl.LightningModule):
    def __init__(self, width=64, goal=0.02):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, width), nn.GELU())
        self.decode = nn.Linear(width, 784)
        self.goal = goal

    def training_step(self, batch, batch_idx):
        pixels = batch[0].flatten(1)
        loss = nn.functional.mse_loss(self.decode(self.encode(pixels)), pixels)
        self.log("loss", loss, prog_bar=True)
        if loss.item() < self.goal:
            self.trainer.should_stop = True
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def main(loader):
    trainer = pl.Trainer(accelerator="gpu", devices=2, strategy="ddp", max_epochs=200, min_epochs=0)
    trainer.fit(Autoencoder(), loader)
    trainer.save_checkpoint("autoencoder.ckpt")
