"""Callbacks of frameworks: flags that ask the trainer for something, hooks that one rank alone runs."""

from __future__ import annotations

from tests.lint.rules.marked import agree

FLAGS = ("SPG101", "SPG102", "SPG103", "SPG206", "SPG302", "SPG303", "SPG304", "SPG305", "SPG308")


def test_flags_under_a_test_of_this_rank_alone() -> None:
    """Rank, clock, files, random numbers, own losses and caught errors decide about a flag of the trainer."""
    assert agree(
        """
        import os
        import random
        import time
        import lightning.pytorch as pl
        from transformers import TrainerCallback

        class Stopper(pl.Callback):
            def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
                if trainer.is_global_zero and self.asked():
                    trainer.should_stop = True  # SPG101

            def on_train_epoch_end(self, trainer, module):
                trainer.should_stop = trainer.should_stop or time.time() > self.end  # SPG302

        class Module(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                loss = self(batch)
                if loss > 3:
                    self.trainer.should_stop = True  # SPG305
                return loss

        class Control(TrainerCallback):
            def on_step_end(self, args, state, control, **kwargs):
                if os.path.exists("stop"):
                    control.should_training_stop = True  # SPG304
                control.should_evaluate = random.random() < 0.1  # SPG303

            def on_log(self, args, state, control, **kwargs):
                if not state.is_world_process_zero:
                    return  # SPG102
                control.should_save = True

            def on_epoch_end(self, args, state, control, **kwargs):
                if state.is_world_process_zero:
                    control.should_save = True  # SPG103
                else:
                    control.should_save = False

            def on_save(self, args, state, control, **kwargs):
                try:
                    self.upload()
                except Exception:
                    control.should_training_stop = True  # SPG206
        """,
        *FLAGS,
    )


def test_flags_that_all_ranks_set_alike() -> None:
    """Steps, shared decisions, the same value in both arms, and other attributes of the same names are right."""
    assert agree(
        """
        import time
        import torch
        import torch.distributed as dist
        import lightning.pytorch as pl
        from transformers import TrainerCallback

        class Stopper(pl.Callback):
            def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
                if trainer.is_global_zero and self.asked():
                    trainer.should_stop = True
                trainer.should_stop = trainer.strategy.reduce_boolean_decision(trainer.should_stop, all=False)

            def on_train_epoch_end(self, trainer, module):
                late = trainer.strategy.broadcast(time.time() > self.end)
                trainer.should_stop = trainer.should_stop or late

            def on_validation_end(self, trainer, module):
                if trainer.callback_metrics["loss"] > 3:
                    trainer.should_stop = True

        class Control(TrainerCallback):
            def on_step_end(self, args, state, control, **kwargs):
                if state.global_step % 10 == 0:
                    control.should_log = True
                over = torch.tensor([float(time.time() > self.end)])
                dist.all_reduce(over, op=dist.ReduceOp.MAX)
                if over.item():
                    control.should_training_stop = True

            def on_save(self, args, state, control, **kwargs):
                if state.is_world_process_zero:
                    print("saved")
                    control.should_save = False
                else:
                    control.should_save = False

        class Own:
            def run(self, control):
                if dist.get_rank() == 0:
                    self.should_stop = True
        """,
        *FLAGS,
    )


def test_hooks_and_functions_that_one_rank_alone_runs() -> None:
    """What stands under `rank_zero_only` is judged even where nothing in sight calls it."""
    assert agree(
        """
        import lightning.pytorch as pl
        import torch.distributed as dist
        from lightning.pytorch.utilities import rank_zero_only
        from torchmetrics.classification import BinaryAccuracy

        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.accuracy = BinaryAccuracy()

            @rank_zero_only
            def on_validation_end(self):
                self.logger.log(self.accuracy.compute())  # SPG101

            @rank_zero_only
            def on_train_epoch_end(self):
                self.log("loss", 1.0, sync_dist=True)  # SPG101

        class Report(pl.Callback):
            @rank_zero_only
            def on_validation_end(self, trainer, module):
                trainer.strategy.barrier()  # SPG101

        @rank_zero_only
        def used_elsewhere(x):
            dist.all_reduce(x)  # SPG101
        """,
        "SPG101",
        "SPG104",
    )


def test_one_report_where_the_call_is_in_sight() -> None:
    """A decorated function that the file calls is reported there; own work of the main rank is right."""
    assert agree(
        """
        import lightning.pytorch as pl
        import torch.distributed as dist
        from lightning.pytorch.utilities import rank_zero_only

        @rank_zero_only
        def reduce(x):
            dist.all_reduce(x)

        def train(x):
            reduce(x)  # SPG104

        class Report(pl.Callback):
            @rank_zero_only
            def on_validation_end(self, trainer, module):
                print(dist.get_rank(), trainer.global_step)

            def on_validation_epoch_end(self, trainer, module):
                module.log("loss", 1.0, sync_dist=True)
                if trainer.is_global_zero:
                    print("done")
        """,
        "SPG101",
        "SPG104",
    )
