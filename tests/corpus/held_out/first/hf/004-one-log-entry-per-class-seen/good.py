import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class RareClasses(pl.LightningDataModule):
    def __init__(self, classes=20, batch_size=16):
        super().__init__()
        self.save_hyperparameters()

    def _set(self, count, seed):
        gen = torch.Generator().manual_seed(seed)
        weights = torch.logspace(0, -3, self.hparams.classes)
        labels = torch.multinomial(weights, count, replacement=True, generator=gen)
        return TensorDataset(torch.randn(count, 32, generator=gen), labels)

    def train_dataloader(self):
        return DataLoader(self._set(4096, 0), batch_size=self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self._set(256, 1), batch_size=self.hparams.batch_size)


class Classifier(pl.LightningModule):
    def __init__(self, classes=20, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, classes))
        self.hits = {}

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train/loss", loss)
        return loss

    def on_validation_epoch_start(self):
        self.hits = {}

    def validation_step(self, batch, _):
        x, y = batch
        right = self.net(x).argmax(1) == y
        for label in y.unique().tolist():
            self.hits.setdefault(label, []).append(right[y == label].float())

    def on_validation_epoch_end(self):
        scores = {}
        for c in range(self.hparams.classes):
            rows = self.hits.get(c)
            scores[f"val/acc_{c}"] = torch.cat(rows).mean() if rows else torch.zeros((), device=self.device)
        self.log_dict(scores, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), self.hparams.lr)


if __name__ == "__main__":
    trainer = pl.Trainer(max_epochs=5, devices=4, strategy="ddp")
    trainer.fit(Classifier(), RareClasses())
