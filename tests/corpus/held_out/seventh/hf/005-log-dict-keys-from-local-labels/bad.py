import torch
import lightning.pytorch as pl
from torch import nn


class Tagger(pl.LightningModule):
    def __init__(self, net, n_classes):
        super().__init__()
        self.net, self.n_classes = net, n_classes

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        guess = self.net(x).argmax(1)
        recall = {}
        for c in y.unique().tolist():
            mask = y == c
            recall[f"val/recall_{c}"] = (guess[mask] == c).float().mean()
        self.log_dict(recall, on_epoch=True, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


def main(net, data, n_classes):
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=20)
    trainer.fit(Tagger(net, n_classes), datamodule=data)
