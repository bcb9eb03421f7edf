import lightning.pytorch as pl
import torch
from torch import nn


class LeafClassifier(pl.LightningModule):
    def __init__(self, net, species):
        super().__init__()
        self.net, self.species = net, species
        self.tally = torch.zeros(2, len(species))  # a buffer would be broadcast by DDP

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        hit = self.net(x).argmax(1) == y
        n = len(self.species)
        self.tally[0] += torch.bincount(y[hit], minlength=n).cpu()
        self.tally[1] += torch.bincount(y, minlength=n).cpu()

    def on_validation_epoch_end(self):
        # one reduction of a fixed size; the values are then the same on all ranks
        total = self.trainer.strategy.reduce(self.tally.to(self.device), reduce_op="sum")
        hits, seen = total
        acc = hits / seen.clamp(min=1)
        self.log_dict({f"val/acc_{name}": acc[c] for c, name in enumerate(self.species)})
        self.tally.zero_()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main(net, species, train_loader, val_loader):
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=20)
    trainer.fit(LeafClassifier(net, species), train_loader, val_loader)
