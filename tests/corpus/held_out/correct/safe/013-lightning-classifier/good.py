from datetime import timedelta
from pathlib import Path

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.utilities import rank_zero_info, rank_zero_only
from torch.utils.data import DataLoader, random_split
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix
from torchvision import models, transforms
from torchvision.datasets import CIFAR10


class CifarData(L.LightningDataModule):
    def __init__(self, root="data", batch_size=128, workers=4):
        super().__init__()
        self.save_hyperparameters()
        self.tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)])

    def prepare_data(self):
        CIFAR10(self.hparams.root, train=True, download=True)
        CIFAR10(self.hparams.root, train=False, download=True)

    def setup(self, stage):
        if stage in ("fit", "validate"):
            full = CIFAR10(self.hparams.root, train=True, transform=self.tf)
            self.train_set, self.val_set = random_split(full, [45000, 5000], torch.Generator().manual_seed(42))
        if stage == "test":
            self.test_set = CIFAR10(self.hparams.root, train=False, transform=self.tf)

    def _loader(self, data, shuffle=False):
        return DataLoader(data, self.hparams.batch_size, shuffle=shuffle, num_workers=self.hparams.workers,
                          persistent_workers=self.hparams.workers > 0, drop_last=shuffle)

    def train_dataloader(self):
        return self._loader(self.train_set, shuffle=True)

    def val_dataloader(self):
        return self._loader(self.val_set)

    def test_dataloader(self):
        return self._loader(self.test_set)


class LitResNet(L.LightningModule):
    def __init__(self, lr=0.05, weight_decay=5e-4, num_classes=10):
        super().__init__()
        self.save_hyperparameters()
        net = models.resnet18(weights=None, num_classes=num_classes)
        net.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        net.maxpool = torch.nn.Identity()
        self.net = net
        self.val_acc = MulticlassAccuracy(num_classes)
        self.confusion = MulticlassConfusionMatrix(num_classes)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        self.log("train_loss_epoch", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y), sync_dist=True)
        self.log("val_acc", self.val_acc, prog_bar=True)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.confusion.update(self(x), y)

    def on_test_epoch_end(self):
        table = self.confusion.compute()
        self.confusion.reset()
        per_class = table.diag() / table.sum(1).clamp(min=1)
        if self.trainer.is_global_zero:
            Path("per_class.txt").write_text("\n".join(f"{v:.4f}" for v in per_class.tolist()))
        self.log("test_acc", per_class.mean(), sync_dist=True)

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9,
                              weight_decay=self.hparams.weight_decay, nesterov=True)
        total = self.trainer.estimated_stepping_batches
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=self.hparams.lr, total_steps=int(total))
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


@rank_zero_only
def describe(model):
    count = sum(p.numel() for p in model.parameters())
    print(f"{type(model).__name__}: {count / 1e6:.1f} M parameters")


def main():
    L.seed_everything(7, workers=True)
    model, data = LitResNet(), CifarData()
    describe(model)
    best = ModelCheckpoint(monitor="val_acc", mode="max", save_last=True)
    trainer = L.Trainer(
        max_epochs=40, accelerator="gpu", devices=-1,
        strategy=DDPStrategy(find_unused_parameters=False, timeout=timedelta(minutes=20)),
        sync_batchnorm=True, precision="16-mixed", logger=CSVLogger("logs"),
        callbacks=[best, EarlyStopping("val_loss", patience=8), LearningRateMonitor("step")])
    trainer.fit(model, datamodule=data)
    rank_zero_info(f"best: {best.best_model_path}")
    trainer.test(model, datamodule=data, ckpt_path="best")


if __name__ == "__main__":
    main()
