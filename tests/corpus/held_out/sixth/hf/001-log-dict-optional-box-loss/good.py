import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision.models import resnet50

from detkit.data import MixedSupervisionDataset, collate_images


class MixedSupervisionDetector(L.LightningModule):
    """Images come from a boxed set and from a much larger set with image labels only."""

    def __init__(self, num_classes: int, lr: float = 2e-4, box_weight: float = 2.0):
        super().__init__()
        self.save_hyperparameters()
        net = resnet50(weights=None)
        net.fc = nn.Identity()
        self.backbone = net
        self.cls_head = nn.Linear(2048, num_classes)
        self.box_head = nn.Linear(2048, 4)

    def training_step(self, batch, batch_idx):
        feats = self.backbone(batch["image"])
        cls_loss = F.cross_entropy(self.cls_head(feats), batch["label"])
        box_err = F.smooth_l1_loss(self.box_head(feats), batch["box"], reduction="none").mean(-1)
        has_box = batch["has_box"]
        weight = has_box.to(box_err.dtype)
        box_loss = (box_err * weight).sum() / weight.sum().clamp(min=1.0)
        losses = {"train/cls": cls_loss.detach(), "train/box": box_loss.detach()}
        total = cls_loss + self.hparams.box_weight * box_loss
        self.log_dict(losses, on_step=True, on_epoch=False, sync_dist=True)
        return total

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.05)


def main():
    L.seed_everything(7)
    dataset = MixedSupervisionDataset("data/mixed", split="train")
    loader = DataLoader(dataset, batch_size=16, shuffle=True, drop_last=True,
                        num_workers=8, collate_fn=collate_images)
    trainer = L.Trainer(accelerator="gpu", devices=8, strategy="ddp", max_epochs=24, log_every_n_steps=20)
    trainer.fit(MixedSupervisionDetector(num_classes=91), loader)


if __name__ == "__main__":
    main()
