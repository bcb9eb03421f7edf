import torch
import lightning.pytorch as pl
from lightning.pytorch.utilities import rank_zero_only
from torchmetrics.image import StructuralSimilarityIndexMeasure
from torchmetrics.image.fid import FrechetInceptionDistance


class FaceGenerator(pl.LightningModule):
    def __init__(self, decoder, latent=128):
        super().__init__()
        self.decoder = decoder
        self.latent = latent
        self.fid = FrechetInceptionDistance(feature=64, normalize=True)
        self.last_real = None

    def training_step(self, batch, batch_idx):
        z = torch.randn(len(batch), self.latent, device=self.device)
        return torch.nn.functional.l1_loss(self.decoder(z), batch)

    def validation_step(self, batch, batch_idx):
        self.last_real = batch

    @rank_zero_only
    def on_validation_end(self):
        z = torch.randn(len(self.last_real), self.latent, device=self.device)
        fake = self.decoder(z)
        self.fid.update(self.last_real, real=True)
        self.fid.update(fake, real=False)
        score = self.fid.compute()
        self.fid.reset()
        self.logger.experiment.add_scalar("val/fid", score, self.global_step)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-4)


def run(decoder, datamodule):
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=20)
    trainer.fit(FaceGenerator(decoder), datamodule=datamodule)
