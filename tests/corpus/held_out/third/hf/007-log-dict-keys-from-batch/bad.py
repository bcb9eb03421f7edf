import torch
import lightning.pytorch as pl
from torch import nn
from torch.utils.data import DataLoader


class PerClass(pl.LightningModule):
    def __init__(self, net, names):
        super().__init__()
        self.net = net
        self.names = names
        self.loss_fn = nn.CrossEntropyLoss(reduction="none")

    def training_step(self, batch, batch_idx):
        x, y = batch
        losses = self.loss_fn(self.net(x), y)
        per_class = {f"train/{self.names[c]}": losses[y == c].mean() for c in y.unique().tolist()}
        self.log_dict(per_class, on_step=False, on_epoch=True, sync_dist=True)
        return losses.mean()

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 50)}


class Data(pl.LightningDataModule):
    def __init__(self, train_set, batch_size):
        super().__init__()
        self.train_set, self.batch_size = train_set, batch_size

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True, num_workers=4, drop_last=True)


def main(net, train_set, names):
    pl.seed_everything(5, workers=True)
    trainer = pl.Trainer(devices=4, strategy="ddp", max_epochs=50, precision="16-mixed")
    trainer.fit(PerClass(net, names), Data(train_set, 16))
