import torch
import lightning.pytorch as pl
from torch import nn


class Clusterer(pl.LightningModule):
    def __init__(self, encoder, width=128, lr=1e-4):
        super().__init__()
        self.encoder = encoder
        self.project = nn.Linear(width, 64)
        self.lr = lr
        self.outputs, self.clusters = [], []

    def forward(self, tokens):
        return nn.functional.normalize(self.project(self.encoder(tokens)), dim=-1)

    def training_step(self, batch, batch_idx):
        tokens, clusters = batch
        z = self(tokens)
        same = clusters[:, None] == clusters[None]
        loss = nn.functional.binary_cross_entropy_with_logits(z @ z.T, same.float())
        self.log("train_loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        tokens, clusters = batch
        self.outputs.append(self(tokens))
        self.clusters.append(clusters)

    def on_validation_epoch_end(self):
        z, gold = torch.cat(self.outputs), torch.cat(self.clusters)
        nearest = (z @ z.T).fill_diagonal_(-2).argmax(1)
        accuracy = (gold[nearest] == gold).float().mean()
        self.log("val_accuracy", accuracy, sync_dist=True)
        self.outputs.clear()
        self.clusters.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main(encoder, train_loader, val_loader):
    trainer = pl.Trainer(accelerator="gpu", devices=2, strategy="ddp", max_epochs=10)
    trainer.fit(Clusterer(encoder), train_loader, val_loader)
