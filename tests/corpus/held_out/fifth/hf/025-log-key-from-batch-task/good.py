import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

TASKS = ("sentiment", "topic", "toxicity", "language")


class MultiTaskClassifier(pl.LightningModule):
    def __init__(self, backbone: nn.Module, dim: int, sizes: dict, lr: float = 2e-5):
        super().__init__()
        self.backbone = backbone
        self.heads = nn.ModuleDict({t: nn.Linear(dim, sizes[t]) for t in TASKS})
        self.lr = lr

    def forward(self, tokens, mask):
        hidden = self.backbone(tokens, mask)
        return {t: head(hidden) for t, head in self.heads.items()}

    def _per_sample(self, batch):
        logits = self(batch["tokens"], batch["mask"])
        losses = torch.zeros(batch["label"].shape[0], device=self.device)
        for i, task in enumerate(TASKS):
            rows = batch["task"] == i
            losses = losses + torch.where(
                rows,
                F.cross_entropy(logits[task], batch["label"].clamp(max=logits[task].shape[1] - 1), reduction="none"),
                torch.zeros_like(losses),
            )
        return losses

    def training_step(self, batch, batch_idx):
        losses = self._per_sample(batch)
        loss = losses.mean()
        self.log("train/loss", loss, sync_dist=True, prog_bar=True)
        sums = torch.zeros(len(TASKS), 2, device=self.device)
        for i in range(len(TASKS)):
            rows = batch["task"] == i
            sums[i, 0] = (losses.detach() * rows).sum()
            sums[i, 1] = rows.sum()
        sums = self.all_gather(sums).reshape(-1, len(TASKS), 2).sum(0)
        for i, (total, count) in enumerate(sums.tolist()):
            if count > 0:
                self.log(f"train/{TASKS[i]}", total / count)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val/loss", self._per_sample(batch).mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main(backbone, train_set, val_set, sizes):
    pl.seed_everything(1)
    trainer = pl.Trainer(
        accelerator="gpu",
        devices=8,
        strategy="ddp",
        max_steps=20_000,
        val_check_interval=1000,
        precision="bf16-mixed",
    )
    trainer.fit(
        MultiTaskClassifier(backbone, 768, sizes),
        DataLoader(train_set, batch_size=32, shuffle=True, num_workers=4, drop_last=True),
        DataLoader(val_set, batch_size=64, num_workers=2),
    )
