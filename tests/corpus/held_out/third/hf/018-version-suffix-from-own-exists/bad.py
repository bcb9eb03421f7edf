import os

import lightning.pytorch as pl
import torch


class BestKeeper(pl.Callback):
    def __init__(self, folder, monitor):
        self.folder, self.monitor = folder, monitor
        self.best_score = None
        self.best_path = ""

    def free_name(self, epoch):
        version, path = 0, os.path.join(self.folder, f"epoch={epoch}.ckpt")
        while os.path.exists(path):
            path = os.path.join(self.folder, f"epoch={epoch}-v{version}.ckpt")
            version += 1
        return path

    def on_validation_end(self, trainer, pl_module):
        if trainer.sanity_checking:
            return
        score = trainer.callback_metrics[self.monitor]
        if self.best_score is None or score < self.best_score:
            self.best_score = score
            self.best_path = self.free_name(trainer.current_epoch)
            trainer.save_checkpoint(self.best_path)


class Model(pl.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.net = torch.nn.Linear(width, 1)

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.net(batch).abs().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(train_loader, val_loader):
    keeper = BestKeeper("ckpts", "val_loss")
    trainer = pl.Trainer(devices=2, strategy="ddp", callbacks=[keeper], max_epochs=5)
    trainer.fit(Model(), train_loader, val_loader)
    best = Model()
    best.load_state_dict(torch.load(keeper.best_path)["state_dict"])
    trainer.validate(best, val_loader)
