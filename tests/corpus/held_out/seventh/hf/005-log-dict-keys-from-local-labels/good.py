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

    def on_validation_epoch_start(self):
        self.hits = torch.zeros(self.n_classes, device=self.device)
        self.seen = torch.zeros(self.n_classes, device=self.device)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        guess = self.net(x).argmax(1)
        self.seen += torch.bincount(y, minlength=self.n_classes)
        self.hits += torch.bincount(y[guess == y], minlength=self.n_classes)

    def on_validation_epoch_end(self):
        hits = self.trainer.strategy.reduce(self.hits, reduce_op="sum")
        seen = self.trainer.strategy.reduce(self.seen, reduce_op="sum")
        recall = hits / seen.clamp(min=1)
        self.log_dict({f"val/recall_{c}": recall[c] for c in range(self.n_classes)})

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


def main(net, data, n_classes):
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=20)
    trainer.fit(Tagger(net, n_classes), datamodule=data)
