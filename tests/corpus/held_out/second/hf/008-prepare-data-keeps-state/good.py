import json
from pathlib import Path

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Words(pl.LightningDataModule):
    def __init__(self, folder: str, batch: int = 32):
        super().__init__()
        self.folder, self.batch = Path(folder), batch

    def _count(self) -> dict:
        counts: dict[str, int] = {}
        for line in (self.folder / "train.txt").read_text().splitlines():
            for word in line.split():
                counts[word] = counts.get(word, 0) + 1
        return counts

    def prepare_data(self):
        ranked = sorted(self._count().items(), key=lambda pair: -pair[1])
        index = {word: i for i, (word, _) in enumerate(ranked)}
        (self.folder / "index.json").write_text(json.dumps(index))

    def setup(self, stage):
        self.index = json.loads((self.folder / "index.json").read_text())
        lines = (self.folder / "train.txt").read_text().splitlines()
        rows = [[self.index.get(w, 0) for w in line.split()][:16] for line in lines]
        rows = [r + [0] * (16 - len(r)) for r in rows]
        self.train = TensorDataset(torch.tensor(rows))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch, shuffle=True)


def main(module, folder):
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=2)
    trainer.fit(module, datamodule=Words(folder))
