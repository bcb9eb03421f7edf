import time

import lightning.pytorch as pl


class WallClock(pl.Callback):
    """Stop the fit when any rank has used up its time."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.began = None

    def on_fit_start(self, trainer, pl_module):
        self.began = time.monotonic()

    def on_train_epoch_end(self, trainer, pl_module):
        late = time.monotonic() - self.began > self.seconds
        late = trainer.strategy.reduce_boolean_decision(late, all=False)
        if late:
            trainer.should_stop = True
            if trainer.global_rank == 0:
                print(f"time is up after epoch {trainer.current_epoch}")


def make_trainer(epochs):
    return pl.Trainer(
        accelerator="gpu",
        devices=4,
        strategy="ddp",
        max_epochs=epochs,
        callbacks=[WallClock(seconds=3600)],
    )
