import os
import tempfile

import lightning.pytorch as pl
import ray.train
from lightning.pytorch.callbacks import Callback
from ray.train import Checkpoint
from ray.train.lightning import RayDDPStrategy, RayLightningEnvironment, prepare_trainer


class ReportEvery(Callback):
    def __init__(self, epochs):
        self.epochs = epochs

    def on_train_epoch_end(self, trainer, pl_module):
        metrics = {k: v.item() for k, v in trainer.callback_metrics.items()}
        metrics["epoch"] = trainer.current_epoch
        due = (trainer.current_epoch + 1) % self.epochs == 0
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if due:
                trainer.save_checkpoint(os.path.join(folder, "ckpt.pt"), weights_only=False)
                if ray.train.get_context().get_world_rank() == 0:
                    checkpoint = Checkpoint.from_directory(folder)
            ray.train.report(metrics=metrics, checkpoint=checkpoint)


def train_loop(config):
    module = config["module_cls"](lr=config["lr"])
    trainer = pl.Trainer(
        devices="auto",
        accelerator="auto",
        strategy=RayDDPStrategy(),
        plugins=[RayLightningEnvironment()],
        callbacks=[ReportEvery(3)],
        enable_checkpointing=False,
        max_epochs=config["epochs"],
    )
    trainer = prepare_trainer(trainer)
    trainer.fit(module, datamodule=config["data_cls"](config["batch"]))
