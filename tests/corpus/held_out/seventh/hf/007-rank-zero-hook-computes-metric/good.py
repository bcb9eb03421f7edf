import torch
import lightning.pytorch as pl
from torchmetrics.image.fid import FrechetInceptionDistance


class Painter(pl.LightningModule):
    def __init__(self, unet, sampler):
        super().__init__()
        self.unet, self.sampler = unet, sampler
        self.fid = FrechetInceptionDistance(feature=2048, normalize=True)

    def training_step(self, batch, batch_idx):
        return self.sampler.loss(self.unet, batch["image"])

    def validation_step(self, batch, batch_idx):
        fake = self.sampler.sample(self.unet, len(batch["image"]))
        self.fid.update(batch["image"], real=True)
        self.fid.update(fake, real=False)

    def on_validation_epoch_end(self):
        value = self.fid.compute()
        if self.trainer.is_global_zero:
            self.logger.log_metrics({"val/fid": value.item()}, step=self.global_step)
        self.fid.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.unet.parameters(), lr=1e-4)


def main(unet, sampler, data):
    trainer = pl.Trainer(accelerator="gpu", devices=8, strategy="ddp", max_steps=200_000)
    trainer.fit(Painter(unet, sampler), datamodule=data)
