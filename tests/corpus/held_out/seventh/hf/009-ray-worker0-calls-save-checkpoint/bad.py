import os
import tempfile
import lightning.pytorch as pl
import ray.train
import ray.train.lightning
from ray.train import Checkpoint, ScalingConfig
from ray.train.torch import TorchTrainer


class ReportEvery(pl.Callback):
    def __init__(self, epochs):
        self.epochs = epochs

    def on_train_epoch_end(self, trainer, module):
        metrics = {k: v.item() for k, v in trainer.callback_metrics.items()}
        due = (trainer.current_epoch + 1) % self.epochs == 0
        rank0 = ray.train.get_context().get_world_rank() == 0
        with tempfile.TemporaryDirectory() as tmp:
            checkpoint = None
            if rank0 and due:
                trainer.save_checkpoint(os.path.join(tmp, "ckpt.pt"), weights_only=False)
                checkpoint = Checkpoint.from_directory(tmp)
            ray.train.report(metrics, checkpoint=checkpoint)


def train_loop(config):
    trainer = pl.Trainer(
        max_epochs=config["epochs"],
        accelerator="auto",
        devices="auto",
        strategy=ray.train.lightning.RayDDPStrategy(),
        plugins=[ray.train.lightning.RayLightningEnvironment()],
        callbacks=[ReportEvery(3)],
        enable_checkpointing=False,
    )
    trainer = ray.train.lightning.prepare_trainer(trainer)
    trainer.fit(config["module"](), datamodule=config["data"]())


def main(config):
    TorchTrainer(train_loop, train_loop_config=config,
                 scaling_config=ScalingConfig(num_workers=4, use_gpu=True)).fit()
