import os
import tempfile

import lightning.pytorch as pl
import ray.train
import ray.train.lightning
from ray.train import Checkpoint


class ReportEveryThird(pl.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        if (trainer.current_epoch + 1) % 3 != 0:
            return
        metrics = {k: v.item() for k, v in trainer.callback_metrics.items()}
        with tempfile.TemporaryDirectory() as folder:
            trainer.save_checkpoint(os.path.join(folder, "model.ckpt"))
            checkpoint = None
            if ray.train.get_context().get_world_rank() == 0:
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report(metrics, checkpoint=checkpoint)


def train_func(config):
    module, loader = config["build"]()
    trainer = pl.Trainer(
        max_epochs=config["epochs"],
        strategy=ray.train.lightning.RayDDPStrategy(),
        plugins=[ray.train.lightning.RayLightningEnvironment()],
        callbacks=[ReportEveryThird()],
        enable_checkpointing=False,
    )
    trainer = ray.train.lightning.prepare_trainer(trainer)
    trainer.fit(module, loader)
