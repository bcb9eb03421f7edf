import os
import traceback

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader


class EmergencyCheckpoint(Callback):
    """Keep the weights of a run that crashed."""

    def __init__(self, folder: str):
        self.folder = folder

    def on_exception(self, trainer, pl_module, exception):
        os.makedirs(self.folder, exist_ok=True)
        name = f"crash-rank{trainer.global_rank}-step{trainer.global_step}.ckpt"
        with open(os.path.join(self.folder, name + ".txt"), "w") as f:
            f.write("".join(traceback.format_exception(exception)))
        # local write only: peers may be anywhere, nothing collective in here
        torch.save(
            {"state_dict": pl_module.state_dict(), "global_step": trainer.global_step},
            os.path.join(self.folder, name),
        )


class Tagger(pl.LightningModule):
    def __init__(self, vocab: int, classes: int, dim: int = 256):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(vocab, dim)
        self.encoder = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * dim, classes)

    def forward(self, tokens):
        hidden, _ = self.encoder(self.embed(tokens))
        return self.head(hidden)

    def training_step(self, batch, batch_idx):
        tokens, tags = batch
        if tokens.max() >= self.hparams.vocab:
            raise ValueError(f"token out of range in batch {batch_idx}")
        loss = nn.functional.cross_entropy(self(tokens).transpose(1, 2), tags, ignore_index=-100)
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-4)


def main(dataset, vocab: int, classes: int):
    pl.seed_everything(7, workers=True)
    trainer = pl.Trainer(
        accelerator="gpu",
        devices=4,
        strategy="ddp",
        max_epochs=5,
        callbacks=[EmergencyCheckpoint("runs/tagger/crash")],
    )
    trainer.fit(Tagger(vocab, classes), DataLoader(dataset, batch_size=32, num_workers=4))
