"""Containers that hooks fill out of this rank's batches: what is computed of them differs between ranks."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
import lightning.pytorch as pl
import torch
import torch.distributed as dist
from elsewhere import f1_score
"""


def test_scores_of_what_own_batches_have_left() -> None:
    """A score of a library, a mean, a list of lists; put there beside a call that communicates or not."""
    assert agree(
        HEAD
        + """
class Spans(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.best = 0.0
        self.gold, self.pred = [], []

    def validation_step(self, batch, index):
        out = self.net(**batch)
        self.log("loss", out.loss, sync_dist=True)
        for tags, guess in zip(batch["labels"].tolist(), out.logits.argmax(-1).tolist()):
            self.gold.append([tag for tag in tags if tag >= 0])
            self.pred.append(guess)

    def on_validation_epoch_end(self):
        score = f1_score(self.gold, self.pred)
        self.gold.clear()
        self.pred.clear()
        if score > self.best:
            self.best = score
            self.trainer.save_checkpoint("best.ckpt")  # SPG305

class Means(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.losses = []

    def validation_step(self, batch, index):
        self.losses.append(self.net(batch))

    def on_validation_epoch_end(self):
        if torch.stack(self.losses).mean() < 0.1:
            dist.barrier()  # SPG305
        self.losses = []
""",
        "SPG305",
    )


def test_what_is_shared_counted_or_only_logged() -> None:
    """A gathered mean, a question whether there is anything, and a score that decides nothing for others."""
    assert agree(
        HEAD
        + """
class Shared(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.best = 0.0
        self.losses, self.names = [], []

    def validation_step(self, batch, index):
        self.losses.append(self.net(batch))
        self.names.append("loss")

    def on_validation_epoch_end(self):
        score = self.all_gather(torch.stack(self.losses).mean()).mean().item()
        if score > self.best:
            self.best = score
            self.trainer.save_checkpoint("best.ckpt")
        if self.losses:
            dist.barrier()
        if f1_score(self.names) > 0:
            dist.barrier()
        self.log("mean", torch.stack(self.losses).mean(), sync_dist=True)
        self.losses.clear()

class NoHook:
    def __init__(self):
        self.settings = []

    def validation_step(self, batch, index):
        self.settings.append(batch)

    def finish(self):
        if f1_score(self.settings) > 0:
            dist.barrier()
""",
        "SPG305",
    )


def test_a_container_that_is_replaced_in_each_round() -> None:
    """What hooks have put there decides in the caller's loop too; a rank whose modules have none has nothing there."""
    assert agree(
        """
        import torch.distributed as dist

        class Monitor:
            def __init__(self, model):
                self.values = {}
                for name, module in model.named_modules():
                    if name.endswith("mlp"):
                        module.register_forward_hook(self._hook(name))

            def _hook(self, name):
                def save(module, args, output):
                    self.values[name] = output.norm().item()
                return save

            def flush(self, step):
                if not self.values:
                    return {}  # SPG102
                parts = [None] * dist.get_world_size()
                dist.all_gather_object(parts, self.values)
                self.values = {}
                return parts

            def flush_always(self, step):
                parts = [None] * dist.get_world_size()
                dist.all_gather_object(parts, self.values)
                self.values = {}
                if not any(parts):
                    return {}
                return parts

        def train(engine, stage, batches, steps):
            monitor, always = Monitor(stage), Monitor(stage)
            for step in range(steps):
                engine.train_batch(batches)
                monitor.flush(step)
                always.flush_always(step)
        """,
        "SPG101",
        "SPG102",
        "SPG305",
    )
