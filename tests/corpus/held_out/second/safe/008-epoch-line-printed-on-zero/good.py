import lightning.pytorch as pl
import torch
from torch import nn


class Regressor(pl.LightningModule):
    def __init__(self, inputs: int = 16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 1))
        self.losses: list[torch.Tensor] = []

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.losses.append(nn.functional.mse_loss(self.net(x), y))

    def on_validation_epoch_end(self):
        mean = torch.stack(self.losses).mean()
        self.log("val", mean, sync_dist=True)
        everyone = self.all_gather(mean)
        if self.trainer.is_global_zero:
            spread = (everyone.max() - everyone.min()).item()
            print(f"epoch {self.current_epoch}: {everyone.mean().item():.4f} +- {spread:.4f}")
        self.losses.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main(train, val):
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2)
    trainer.fit(Regressor(), train, val)
