import os
import pickle

import lightning.pytorch as pl
import torch


class Forecaster(pl.LightningModule):
    def __init__(self, input_size, horizon):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(input_size, 128), torch.nn.ReLU(), torch.nn.Linear(128, horizon))

    def training_step(self, batch, batch_idx):
        past, future = batch
        return (self.net(past) - future).abs().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Forecasts:
    def __init__(self, models, freq):
        self.models, self.freq = models, freq

    def fit(self, loader, devices):
        for model in self.models:
            trainer = pl.Trainer(devices=devices, strategy="ddp", max_epochs=5, enable_checkpointing=False)
            trainer.fit(model, loader)

    def save(self, path):
        if not os.path.exists(path):
            os.makedirs(path)
        rank = int(os.environ.get("LOCAL_RANK", "0"))
        if rank != 0:
            return
        for index, model in enumerate(self.models):
            torch.save(model.state_dict(), os.path.join(path, f"model_{index}.pt"))
        with open(os.path.join(path, "configuration.pkl"), "wb") as handle:
            pickle.dump({"freq": self.freq, "models": len(self.models)}, handle)


def main(loader):
    nf = Forecasts([Forecaster(48, 12), Forecaster(96, 12)], freq="h")
    nf.fit(loader, devices=4)
    nf.save("checkpoints/run0")
