import lightning.pytorch as pl
import torch
from torchmetrics.detection import MeanAveragePrecision


class Detector(pl.LightningModule):
    def __init__(self, net, lr=1e-4):
        super().__init__()
        self.net, self.lr = net, lr
        self.map = MeanAveragePrecision(iou_type="bbox")

    def training_step(self, batch, index):
        images, targets = batch
        losses = self.net(images, targets)
        return sum(losses.values())

    def validation_step(self, batch, index):
        images, targets = batch
        found = self.net(images)
        for prediction, target in zip(found, targets):
            if len(target["boxes"]) == 0:
                continue
            self.map.update([prediction], [target])

    def on_validation_epoch_end(self):
        result = self.map.compute()
        self.log("val/map", result["map"], sync_dist=False)
        self.map.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main(net, data):
    pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=12).fit(Detector(net), data)
