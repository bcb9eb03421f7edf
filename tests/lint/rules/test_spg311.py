"""SPG311: attributes that one process sets and all read."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_set_in_prepare_data() -> None:
    """In the hook itself, in a method of its own, in a module, behind another class, with a default before."""
    assert agree(
        """
        import lightning.pytorch as pl
        from torch.utils.data import DataLoader

        class Words(pl.LightningDataModule):
            def prepare_data(self):
                self.rows = open("train.txt").readlines()  # SPG311

            def train_dataloader(self):
                return DataLoader(self.rows, batch_size=8)

        class Base(pl.LightningDataModule):
            pass

        class Scaled(Base):
            def __init__(self, path):
                super().__init__()
                self.path, self.mean = path, 0.0

            def _measure(self):
                values = [float(line) for line in open(self.path)]
                self.mean = sum(values) / len(values)  # SPG311

            def prepare_data(self):
                self._measure()

            def setup(self, stage=None):
                self.train = [float(line) - self.mean for line in open(self.path)]

        class Tagger(pl.LightningModule):
            def prepare_data(self):
                self.labels = sorted(set(open("labels.txt")))  # SPG311

            def training_step(self, batch, index):
                return self.net(batch, len(self.labels))
        """,
        "SPG311",
    )


def test_set_in_all_processes() -> None:
    """Files written and read in setup, attributes of the hook alone or set again, other classes."""
    assert agree(
        """
        import lightning.pytorch as pl
        from torch.utils.data import DataLoader

        class Words(pl.LightningDataModule):
            def prepare_data(self):
                self.source = "train.txt"
                self.rows = open(self.source).readlines()
                open("rows.txt", "w").writelines(self.rows)

            def setup(self, stage):
                self.rows = open("rows.txt").readlines()

            def train_dataloader(self):
                return DataLoader(self.rows, batch_size=8)

        class Shared(pl.LightningDataModule):
            def _read(self):
                self.rows = open("train.txt").readlines()

            def prepare_data(self):
                self._read()

            def setup(self, stage):
                self._read()

            def train_dataloader(self):
                return DataLoader(self.rows)

        class Plain:
            def prepare_data(self):
                self.rows = [1]

            def train(self):
                return self.rows
        """,
        "SPG311",
    )


def test_methods_that_only_bear_the_name() -> None:
    """A method that needs arguments is called by the program, on every rank; the hook needs none."""
    assert agree(
        """
        import pytorch_lightning as pl

        class Captions(pl.LightningModule):
            def prepare_data(self, sample, batch_size):
                self.forcing = sample is not None

            def forward(self, sample):
                self.prepare_data(sample, 3)
                return self.forcing

        class Hooked(pl.LightningModule):
            def prepare_data(self, again=False):
                self.rows = [1, 2]  # SPG311

            def train_dataloader(self):
                return self.rows
        """,
        "SPG311",
    )
