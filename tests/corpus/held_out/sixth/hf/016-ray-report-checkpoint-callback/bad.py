import os
import tempfile

import lightning.pytorch as pl
import ray.train
import torch
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.lightning import RayDDPStrategy, RayLightningEnvironment, prepare_trainer
from ray.train.torch import TorchTrainer

from forecast.data import WeatherDataModule
from forecast.model import SpectralForecaster


class ReportBest(pl.Callback):
    """Hands metrics to Ray after every validation and a checkpoint every few epochs."""

    def __init__(self, every: int = 2, monitor: str = "val/rmse"):
        self.every, self.monitor = every, monitor

    def on_validation_epoch_end(self, trainer, pl_module):
        if trainer.sanity_checking:
            return
        metrics = {k: v.item() for k, v in trainer.callback_metrics.items() if torch.is_tensor(v)}
        due = (trainer.current_epoch + 1) % self.every == 0
        rank = ray.train.get_context().get_world_rank()
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if due and rank == 0:
                trainer.save_checkpoint(os.path.join(folder, "model.ckpt"), weights_only=False)
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report(metrics, checkpoint=checkpoint)


def train_loop(config):
    pl.seed_everything(config["seed"])
    data = WeatherDataModule(config["root"], batch_size=config["batch_size"])
    model = SpectralForecaster(lr=config["lr"], modes=config["modes"])
    trainer = pl.Trainer(
        max_epochs=config["epochs"], accelerator="auto", devices="auto",
        strategy=RayDDPStrategy(), plugins=[RayLightningEnvironment()],
        callbacks=[ReportBest(every=config["every"])],
        enable_progress_bar=False, enable_checkpointing=False,
    )
    prepare_trainer(trainer).fit(model, datamodule=data)


if __name__ == "__main__":
    TorchTrainer(
        train_loop,
        train_loop_config={"seed": 0, "root": "/data/era5", "batch_size": 8, "lr": 3e-4, "modes": 32,
                           "epochs": 40, "every": 2},
        scaling_config=ScalingConfig(num_workers=8, use_gpu=True),
        run_config=RunConfig(name="spectral", storage_path="/shared/ray"),
    ).fit()
