import os

import lightning.pytorch as pl
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import WandbLogger


def make_logger(project, tags):
    return WandbLogger(project=project, tags=tags, log_model=False)


def checkpoint_folder(project):
    return os.path.join("runs", project, "checkpoints")


def make_callbacks(project, every):
    saver = ModelCheckpoint(
        dirpath=checkpoint_folder(project),
        filename="{epoch:03d}-{val_loss:.3f}",
        monitor="val_loss",
        save_top_k=3,
        save_last=True,
        every_n_epochs=every,
    )
    return [saver, LearningRateMonitor("step")]


def main(module, data, project="depth", epochs=60):
    pl.seed_everything(11)
    logger = make_logger(project, ["baseline"])
    trainer = pl.Trainer(
        accelerator="gpu",
        devices=4,
        strategy="ddp",
        logger=logger,
        callbacks=make_callbacks(project, every=2),
        max_epochs=epochs,
    )
    trainer.fit(module, datamodule=data)
    trainer.test(ckpt_path="best", datamodule=data)
