from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback


class Rescue(Callback):
    def __init__(self, folder):
        self.folder = Path(folder)

    def on_exception(self, trainer, pl_module, exception):
        print(f"rank {trainer.global_rank}: {type(exception).__name__} at step {trainer.global_step}: {exception}")

    def on_train_epoch_end(self, trainer, pl_module):
        trainer.save_checkpoint(self.folder / f"epoch-{trainer.current_epoch}.ckpt")


class Net(pl.LightningModule):
    def __init__(self, core):
        super().__init__()
        self.core = core

    def training_step(self, batch, index):
        wave, text = batch
        if wave.shape[-1] < 400:
            raise ValueError(f"batch {index} is too short")
        return self.core(wave, text)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


def main(core, data):
    trainer = pl.Trainer(devices=8, num_nodes=2, strategy="fsdp", max_epochs=20, callbacks=[Rescue("rescue")])
    trainer.fit(Net(core), data)
