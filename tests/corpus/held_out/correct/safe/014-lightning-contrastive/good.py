from datetime import timedelta

import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import STL10
from torchvision.models import resnet18


class TwoViews:
    def __init__(self, size=96):
        self.tf = transforms.Compose([
            transforms.RandomResizedCrop(size, scale=(0.2, 1.0)), transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandomGrayscale(0.2), transforms.ToTensor()])

    def __call__(self, image):
        return self.tf(image), self.tf(image)


class ContrastiveData(pl.LightningDataModule):
    def __init__(self, root, batch_size):
        super().__init__()
        self.root, self.batch_size = root, batch_size

    def prepare_data(self):
        STL10(self.root, split="unlabeled", download=True)

    def setup(self, stage=None):
        self.pairs = STL10(self.root, split="unlabeled", transform=TwoViews())
        self.labelled = STL10(self.root, split="train", transform=transforms.ToTensor())

    def train_dataloader(self):
        return DataLoader(self.pairs, self.batch_size, shuffle=True, drop_last=True, num_workers=8)

    def val_dataloader(self):
        # drop_last keeps all gathered pieces of one shape
        return DataLoader(self.labelled, self.batch_size, drop_last=True, num_workers=4)


class SimCLR(pl.LightningModule):
    def __init__(self, dim=128, temperature=0.2, lr=0.3, max_epochs=200):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = resnet18(weights=None)
        self.backbone.fc = nn.Identity()
        self.head = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, dim))
        self.probe_feats, self.probe_labels = [], []

    def forward(self, x):
        return F.normalize(self.head(self.backbone(x)), dim=-1)

    def nt_xent(self, a, b):
        world = self.trainer.world_size
        if world > 1:
            all_a = self.all_gather(a, sync_grads=True).flatten(0, 1)
            all_b = self.all_gather(b, sync_grads=True).flatten(0, 1)
        else:
            all_a, all_b = a, b
        n = a.shape[0]
        own = self.global_rank * n + torch.arange(n, device=a.device)
        t = self.hparams.temperature
        ab, ba = a @ all_b.T / t, b @ all_a.T / t
        aa, bb = a @ all_a.T / t, b @ all_b.T / t
        hide = F.one_hot(own, all_a.shape[0]).bool()
        aa, bb = aa.masked_fill(hide, -1e4), bb.masked_fill(hide, -1e4)
        return 0.5 * (F.cross_entropy(torch.cat([ab, aa], 1), own) + F.cross_entropy(torch.cat([ba, bb], 1), own))

    def training_step(self, batch, _):
        (x1, x2), _labels = batch
        z = self(torch.cat([x1, x2]))
        a, b = z.chunk(2)
        loss = self.nt_xent(a, b)
        self.log("loss", loss, prog_bar=True, sync_dist=True, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.probe_feats.append(F.normalize(self.backbone(x), dim=-1))
        self.probe_labels.append(y)

    def on_validation_epoch_end(self):
        feats = self.all_gather(torch.cat(self.probe_feats)).reshape(-1, 512)
        labels = self.all_gather(torch.cat(self.probe_labels)).reshape(-1)
        self.probe_feats.clear()
        self.probe_labels.clear()
        sims = feats @ feats.T
        sims.fill_diagonal_(-1)
        nearest = labels[sims.argmax(1)]
        acc = (nearest == labels).float().mean()
        if self.trainer.is_global_zero:
            print(f"epoch {self.current_epoch}: nearest-neighbour accuracy {acc.item():.3f}")
        self.log("knn_acc", acc, sync_dist=True)

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=1e-4)
        return [opt], [torch.optim.lr_scheduler.CosineAnnealingLR(opt, self.hparams.max_epochs)]


def main():
    pl.seed_everything(0)
    strategy = DDPStrategy(static_graph=True, timeout=timedelta(minutes=30))
    trainer = pl.Trainer(accelerator="gpu", devices=8, strategy=strategy, max_epochs=200,
                         precision="bf16-mixed", sync_batchnorm=True, check_val_every_n_epoch=5)
    trainer.fit(SimCLR(), datamodule=ContrastiveData("data", 256))


if __name__ == "__main__":
    main()
