import argparse

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint


class Tagger(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def _loss(self, batch):
        return torch.nn.functional.cross_entropy(self.net(batch["x"]), batch["y"])

    def training_step(self, batch, _):
        return self._loss(batch)

    def validation_step(self, batch, _):
        self.log("val_loss", self._loss(batch), sync_dist=True)

    def test_step(self, batch, _):
        self.log("test_loss", self._loss(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def finish(trainer, module, data):
    if trainer.is_global_zero:
        print("testing", trainer.checkpoint_callback.best_model_path)
    trainer.test(module, datamodule=data, ckpt_path="best")


def main(net, data):
    cli = argparse.ArgumentParser()
    cli.add_argument("--devices", type=int, default=2)
    cli.add_argument("--epochs", type=int, default=3)
    args = cli.parse_args()
    keep = ModelCheckpoint(monitor="val_loss", save_top_k=1)
    trainer = pl.Trainer(devices=args.devices, strategy="ddp", max_epochs=args.epochs, callbacks=[keep])
    module = Tagger(net)
    trainer.fit(module, datamodule=data)
    finish(trainer, module, data)
