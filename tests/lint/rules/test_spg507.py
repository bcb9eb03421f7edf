"""SPG507: a monitored value that one rank alone logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.rules.marked import agree, in_files

CODE = "SPG507"


def test_values_of_one_rank_that_are_monitored() -> None:
    """By the flag, under a test, in a decorated hook, as part of a dict; monitored by callbacks and schedulers."""
    assert agree(
        """
        import lightning.pytorch as pl
        from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
        from lightning.pytorch.utilities import rank_zero_only

        ACCURACY = "val/acc"

        class Model(pl.LightningModule):
            def training_step(self, batch, index):
                self.log("train/loss", batch.mean(), rank_zero_only=True)
                return batch.mean()

            def validation_step(self, batch, index):
                self.log("val/loss", batch.mean(), on_epoch=True, rank_zero_only=True)  # SPG507
                self.log_dict({"a": 1.0, "f1": 2.0}, rank_zero_only=True)  # SPG507
                if self.trainer.is_global_zero:
                    self.log(ACCURACY, batch.max())  # SPG507

            @rank_zero_only
            def on_validation_epoch_end(self):
                self.log(name="recall", value=1.0)  # SPG507

            def configure_optimizers(self):
                optimizer = self.make()
                return {"optimizer": optimizer, "lr_scheduler": {"scheduler": 1, "monitor": "recall"}}

        def trainer():
            callbacks = [ModelCheckpoint("out", None, "val/loss_epoch"), EarlyStopping("f1")]
            return pl.Trainer(callbacks=[*callbacks, ModelCheckpoint(monitor=ACCURACY)])
        """,
        CODE,
    )


def test_values_that_every_rank_knows() -> None:
    """Reduced values, values that nothing monitors, values that all ranks log."""
    assert agree(
        """
        import lightning.pytorch as pl
        from lightning.pytorch.callbacks import ModelCheckpoint

        class Model(pl.LightningModule):
            def validation_step(self, batch, index):
                self.log("loss", batch.mean(), sync_dist=True)
                self.log("speed", 1.0, rank_zero_only=True)
                if not self.trainer.is_global_zero:
                    return
                self.logger.log({"loss": 1.0})

            def on_validation_epoch_end(self):
                if self.trainer.is_global_zero:
                    print("loss")
                else:
                    print("other")
                self.log("loss", 1.0)

        def trainer():
            return pl.Trainer(callbacks=[ModelCheckpoint(monitor="loss")])
        """,
        CODE,
    )


def test_monitored_in_the_file_that_imports_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program monitors what its model logs; another program with the same name does not count."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(
        "import lightning.pytorch as pl\n\nclass Model(pl.LightningModule):\n"
        "    def validation_step(self, batch, index):\n        self.log('loss', 1.0, rank_zero_only=True)\n"
    )
    monitor = (
        "from lightning.pytorch.callbacks import ModelCheckpoint\nkeep = ModelCheckpoint(monitor='loss')\n"
    )
    (tmp_path / "train.py").write_text(monitor)
    assert in_files({"model.py": "", "train.py": ""}, CODE) == []
    (tmp_path / "train.py").write_text("from model import Model\n" + monitor)
    assert in_files({"model.py": "", "train.py": ""}, CODE) == [("model.py", 5, CODE)]
