import torch
import torch.distributed as dist
import lightning.pytorch as pl
import torchmetrics
from torch import nn


class Reader(pl.LightningModule):
    def __init__(self, backbone, hidden, labels):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(hidden, labels)
        self.f1 = torchmetrics.F1Score(task="multiclass", num_classes=labels, average="macro")
        self.best = 0.0

    def forward(self, x):
        return self.head(self.backbone(x))

    def training_step(self, batch, batch_idx):
        return nn.functional.cross_entropy(self(batch["x"]), batch["y"])

    def validation_step(self, batch, batch_idx):
        self.f1.update(self(batch["x"]).argmax(-1), batch["y"])

    def on_validation_epoch_end(self):
        if self.global_rank == 0:
            value = self.f1.compute()
            self.best = max(self.best, value.item())
            print(f"epoch {self.current_epoch}: f1 {value:.4f}, best {self.best:.4f}")
        dist.barrier()
        self.f1.reset()

    def configure_optimizers(self):
        groups = [
            {"params": self.backbone.parameters(), "lr": 2e-5},
            {"params": self.head.parameters(), "lr": 1e-3},
        ]
        return torch.optim.AdamW(groups)


def main(backbone, train_loader, val_loader):
    trainer = pl.Trainer(devices=2, accelerator="gpu", strategy="ddp", max_epochs=4)
    trainer.fit(Reader(backbone, 768, 7), train_loader, val_loader)
