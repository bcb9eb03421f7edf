import os
import shutil
import tempfile

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback
from ray import train
from ray.train import Checkpoint, CheckpointConfig, RunConfig, ScalingConfig
from ray.train.lightning import RayDDPStrategy, RayLightningEnvironment, prepare_trainer
from ray.train.torch import TorchTrainer


class ReportEachEpoch(Callback):
    """Hands metrics and the checkpoint of each epoch over to Ray Train."""

    NAME = "epoch.ckpt"

    def __init__(self) -> None:
        super().__init__()
        ctx = train.get_context()
        self.local_rank = ctx.get_local_rank()
        # one folder a node: each worker reads what the node's ranks wrote
        self.root = os.path.join(tempfile.gettempdir(), ctx.get_trial_name())
        if self.local_rank == 0:
            shutil.rmtree(self.root, ignore_errors=True)

    def _metrics(self, trainer) -> dict:
        out = {k: v.item() for k, v in trainer.callback_metrics.items()}
        out["epoch"] = trainer.current_epoch
        out["step"] = trainer.global_step
        return out

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        folder = os.path.join(self.root, str(trainer.current_epoch))
        os.makedirs(folder, exist_ok=True)
        trainer.save_checkpoint(os.path.join(folder, self.NAME), weights_only=False)
        train.report(self._metrics(trainer), checkpoint=Checkpoint.from_directory(folder))
        trainer.strategy.barrier("report")
        if self.local_rank == 0:
            shutil.rmtree(folder)


def train_func(config: dict) -> None:
    from segmentation import SegData, SegModel

    trainer = pl.Trainer(
        max_epochs=config["epochs"],
        accelerator="auto",
        devices="auto",
        strategy=RayDDPStrategy(),
        plugins=[RayLightningEnvironment()],
        callbacks=[ReportEachEpoch()],
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer = prepare_trainer(trainer)
    trainer.fit(SegModel(lr=config["lr"]), datamodule=SegData(config["root"], batch_size=config["bs"]))


def main() -> None:
    trainer = TorchTrainer(
        train_func,
        train_loop_config={"epochs": 20, "lr": 3e-4, "bs": 8, "root": "/data/seg"},
        scaling_config=ScalingConfig(num_workers=8, use_gpu=True),
        run_config=RunConfig(checkpoint_config=CheckpointConfig(num_to_keep=2)),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
