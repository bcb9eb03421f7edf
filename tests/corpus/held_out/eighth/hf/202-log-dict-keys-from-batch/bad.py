import lightning.pytorch as pl
import torch
from torch import nn


class LeafClassifier(pl.LightningModule):
    def __init__(self, net, species):
        super().__init__()
        self.net, self.species = net, species

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        hit = self.net(x).argmax(1) == y
        scores = {}
        for c in y.unique().tolist():
            scores[f"val/acc_{self.species[c]}"] = hit[y == c].float().mean()
        self.log_dict(scores, on_epoch=True, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main(net, species, train_loader, val_loader):
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=20)
    trainer.fit(LeafClassifier(net, species), train_loader, val_loader)
