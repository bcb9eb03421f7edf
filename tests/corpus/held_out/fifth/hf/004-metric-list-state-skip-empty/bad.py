import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader
from torchmetrics import Metric


class BoxRecall(Metric):
    """Recall at IoU 0.5 over the whole validation set."""

    full_state_update = False

    def __init__(self, threshold: float = 0.5):
        super().__init__()
        self.threshold = threshold
        self.add_state("dets", default=[], dist_reduce_fx=None)
        self.add_state("targets", default=[], dist_reduce_fx=None)

    def update(self, preds: list, targets: list) -> None:
        for pred, target in zip(preds, targets):
            boxes = pred["boxes"][pred["scores"] > 0.05].reshape(-1, 4)
            if boxes.shape[0] == 0:
                continue
            self.dets.append(boxes)
            self.targets.append(target["boxes"].reshape(-1, 4))

    def compute(self) -> torch.Tensor:
        hit, total = 0, 0
        for det, gt in zip(self.dets, self.targets):
            total += gt.shape[0]
            if det.shape[0] == 0 or gt.shape[0] == 0:
                continue
            hit += int((pairwise_iou(gt, det).max(dim=1).values > self.threshold).sum())
        return torch.tensor(hit / max(total, 1))


def pairwise_iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area_a = (a[:, 2:] - a[:, :2]).prod(-1)
    area_b = (b[:, 2:] - b[:, :2]).prod(-1)
    return inter / (area_a[:, None] + area_b[None] - inter + 1e-6)


class Detector(pl.LightningModule):
    def __init__(self, net: torch.nn.Module, lr: float = 1e-4):
        super().__init__()
        self.net = net
        self.lr = lr
        self.recall = BoxRecall()

    def training_step(self, batch, batch_idx):
        images, targets = batch
        return sum(self.net(images, targets).values())

    def validation_step(self, batch, batch_idx):
        images, targets = batch
        self.recall.update(self.net(images), targets)

    def on_validation_epoch_end(self):
        self.log("val/recall", self.recall.compute().to(self.device))
        self.recall.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.net.parameters(), lr=self.lr)


def run(net, train_set, val_set, collate):
    trainer = pl.Trainer(accelerator="gpu", devices=8, strategy="ddp", max_epochs=12)
    # the distributed sampler pads, so each rank sees the same number of images
    trainer.fit(
        Detector(net),
        DataLoader(train_set, batch_size=4, collate_fn=collate, shuffle=True),
        DataLoader(val_set, batch_size=1, collate_fn=collate),
    )
