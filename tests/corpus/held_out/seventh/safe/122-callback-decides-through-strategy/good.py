import os
import shutil
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback


class BudgetCallback(Callback):
    """Stop and keep a checkpoint when any process has used up its time."""

    def __init__(self, seconds, folder):
        self.seconds, self.folder, self.began = seconds, folder, None

    def on_train_start(self, trainer, module):
        self.began = time.monotonic()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        over = time.monotonic() - self.began > self.seconds
        over = trainer.strategy.reduce_boolean_decision(over, all=False)
        if not over:
            return
        path = os.path.join(self.folder, f"budget-{trainer.global_step}.ckpt")
        trainer.save_checkpoint(path)
        if trainer.is_global_zero:
            shutil.copyfile(path, os.path.join(self.folder, "last.ckpt"))
        trainer.strategy.barrier("budget")
        trainer.should_stop = True


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.randn(256, 8))
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=5,
        callbacks=[BudgetCallback(30.0, "ckpt")],
    )
    trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=8))
