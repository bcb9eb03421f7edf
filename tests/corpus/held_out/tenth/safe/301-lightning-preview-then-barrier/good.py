import json
import os

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(L.LightningModule):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.net = nn.Linear(4, 1)
        self.worst = 0.0

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.worst = max(self.worst, loss.item())
        self.log("val_loss", loss, on_epoch=True, sync_dist=True)

    def on_validation_epoch_end(self):
        if self.trainer.is_global_zero:
            os.makedirs(self.folder, exist_ok=True)
            with open(os.path.join(self.folder, f"e{self.current_epoch}.json"), "w") as f:
                json.dump({"worst_on_first": self.worst}, f)
        self.trainer.strategy.barrier("preview")
        self.worst = 0.0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    L.seed_everything(1)
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=8)
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2)
    trainer.fit(Regressor("previews"), loader, loader)
