"""Attributes of trainers that communicate when they are read, and trainers that callbacks hold."""

from __future__ import annotations

from tests.lint.rules.marked import agree, reported


def test_the_folder_of_the_logs_is_broadcast() -> None:
    """Lightning's ``trainer.log_dir``, read on one rank: in hooks, helpers, properties, through ``getattr``."""
    assert agree(
        """
        import os
        import lightning.pytorch as pl
        from lightning.pytorch.utilities import rank_zero_only

        class Keep(pl.Callback):
            @rank_zero_only
            def on_fit_start(self, trainer, pl_module):
                os.makedirs(trainer.log_dir)  # SPG101

            def on_fit_end(self, trainer, pl_module):
                if trainer.is_global_zero:
                    self.write(pl_module)  # SPG104

            def write(self, module):
                os.makedirs(getattr(module.trainer, "log_dir"))

        class Module(pl.LightningModule):
            @property
            def folder(self):
                return self.trainer.log_dir

            def on_train_start(self):
                if self.global_rank == 0:
                    os.makedirs(self.folder)  # SPG104

        @rank_zero_only
        def dump(trainer, text):
            with open(trainer.log_dir, "w") as file:  # SPG101
                file.write(text)

        def main(model):
            trainer = pl.Trainer(devices=2)
            trainer.fit(model)
            if trainer.is_global_zero:
                print(trainer.log_dir)  # SPG101
        """,
        "SPG101",
        "SPG104",
    )


def test_the_folder_asked_for_by_all_ranks() -> None:
    """Read on every rank and used on one; the logger's own folder is plain."""
    assert agree(
        """
        import os
        import lightning.pytorch as pl
        from lightning.pytorch.utilities import rank_zero_only

        class Keep(pl.Callback):
            def on_fit_start(self, trainer, pl_module):
                folder = trainer.log_dir
                if trainer.is_global_zero:
                    os.makedirs(folder)
                self.write(folder)

            @rank_zero_only
            def write(self, folder):
                print(folder)

            @rank_zero_only
            def on_fit_end(self, trainer, pl_module):
                print(trainer.logger.log_dir, trainer.default_root_dir)
        """,
        "SPG101",
        "SPG104",
    )


METRICS = """
import lightning.pytorch as pl

class Module(pl.LightningModule):
    def validation_step(self, batch, index):
        self.log("loss", batch, sync_dist=True)

    def on_train_epoch_end(self):
        if self.global_rank == 0:
            print(self.trainer.progress_bar_metrics)  # SPG101

class Table(pl.Callback):
    def on_validation_epoch_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            self.add(trainer)  # SPG104

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, index):
        if trainer.is_global_zero:
            self.add(trainer)

    def on_validation_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            print(trainer.callback_metrics)

    def add(self, trainer):
        self.rows.append(dict(trainer.logged_metrics))

def main(module):
    trainer = pl.Trainer(devices=2)
    trainer.fit(module)
    if trainer.is_global_zero:
        print(trainer.callback_metrics)
"""


def test_metrics_are_reduced_at_the_end_of_an_epoch() -> None:
    """What was logged with sync_dist is reduced by the hook that reads it first; elsewhere it is kept."""
    assert agree(METRICS, "SPG101", "SPG104")


def test_metrics_that_nothing_reduces() -> None:
    """Without sync_dist and torchmetrics in the project reading them is rank-local."""
    assert reported(METRICS.replace(", sync_dist=True", ""), "SPG101", "SPG104") == []


def test_batches_are_counted_by_making_the_loaders() -> None:
    """``estimated_stepping_batches`` makes the loaders, behind a barrier, where nothing has yet."""
    assert agree(
        """
        import lightning.pytorch as pl

        class Module(pl.LightningModule):
            def configure_optimizers(self):
                if self.trainer.is_global_zero:
                    print(self.trainer.estimated_stepping_batches)  # SPG101

            def on_train_start(self):
                if self.trainer.is_global_zero:
                    print(self.trainer.estimated_stepping_batches)
        """,
        "SPG101",
    )


def test_a_callback_that_holds_the_trainer() -> None:
    """A Hugging Face callback's ``trainer``: handed in, set from outside, annotated, under another name."""
    assert agree(
        """
        from transformers import Trainer, TrainerCallback

        class Given(TrainerCallback):
            def __init__(self, trainer):
                self._kept = trainer

            def on_epoch_end(self, args, state, control, **kwargs):
                if not state.is_world_process_zero:
                    return control  # SPG102
                self._kept.save_model("epoch")

        class Later(TrainerCallback):
            def __init__(self):
                self.trainer = None

            def on_save(self, args, state, control, **kwargs):
                if args.should_save:
                    self.trainer.save_model("best")  # SPG101

        class Annotated(TrainerCallback):
            def __init__(self, owner: Trainer):
                self.owner = owner

            def on_train_end(self, args, state, control, **kwargs):
                if args.process_index == 0:
                    self.keep()  # SPG104

            def keep(self):
                self.owner.save_model("last")

        def keep(trainer, folder):
            if trainer.is_world_process_zero():
                trainer.save_model(folder)  # SPG101
        """,
        "SPG101",
        "SPG102",
        "SPG104",
    )


def test_a_callback_that_saves_on_all_ranks() -> None:
    """The trainer saves on every rank and decides itself who writes; the state is written by rank 0 alone."""
    assert agree(
        """
        from transformers import TrainerCallback

        class Given(TrainerCallback):
            def __init__(self, trainer):
                self.trainer = trainer

            def on_epoch_end(self, args, state, control, **kwargs):
                self.trainer.save_model("epoch")
                if state.is_world_process_zero:
                    self.trainer.save_state()
                    print(self.trainer.args.output_dir)
        """,
        "SPG101",
        "SPG102",
        "SPG104",
    )


def test_a_trainer_of_ones_own() -> None:
    """Where nothing tells whose trainer it is, its attributes and methods mean nothing."""
    assert agree(
        """
        import torch.distributed as dist

        class Saver:
            def __init__(self, trainer):
                self.trainer = trainer

            def save(self):
                if dist.get_rank() == 0:
                    print(self.trainer.log_dir)
                    self.trainer.save_model("x")
        """,
        "SPG101",
        "SPG104",
    )
