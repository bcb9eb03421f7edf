import os
import tempfile

import lightning.pytorch as pl
import ray.train
from ray.train import Checkpoint, ScalingConfig
from ray.train.lightning import RayDDPStrategy, RayLightningEnvironment, prepare_trainer
from ray.train.torch import TorchTrainer


class ReportCallback(pl.Callback):
    def __init__(self, every):
        self.every = every

    def on_train_epoch_end(self, trainer, pl_module):
        metrics = {name: value.item() for name, value in trainer.callback_metrics.items()}
        due = (trainer.current_epoch + 1) % self.every == 0
        on_first = ray.train.get_context().get_world_rank() == 0
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if due and on_first:
                trainer.save_checkpoint(os.path.join(folder, "model.ckpt"))
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report(metrics=metrics, checkpoint=checkpoint)


def train_func(config):
    trainer = pl.Trainer(
        max_epochs=config["epochs"],
        strategy=RayDDPStrategy(),
        plugins=[RayLightningEnvironment()],
        callbacks=[ReportCallback(every=3)],
        enable_checkpointing=False,
    )
    trainer = prepare_trainer(trainer)
    trainer.fit(config["make_model"](), config["make_loader"]())


def main(make_model, make_loader):
    config = {"epochs": 12, "make_model": make_model, "make_loader": make_loader}
    scaling = ScalingConfig(num_workers=4, use_gpu=True)
    TorchTrainer(train_func, train_loop_config=config, scaling_config=scaling).fit()
