"""Metrics whose every update is an entry of its own: as many updates on every rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG305", "SPG401")


def test_updates_by_own_data() -> None:
    """An update left out, or made, where this rank's own batch lets it."""
    assert agree(
        """
        import lightning.pytorch as pl
        from torchmetrics.detection.mean_ap import MeanAveragePrecision
        from torchmetrics.retrieval import RetrievalMRR

        class Detector(pl.LightningModule):
            def __init__(self, net):
                super().__init__()
                self.net, self.score = net, MeanAveragePrecision()
                self.mrr = RetrievalMRR()

            def validation_step(self, batch, index):
                for found, target in zip(self.net(batch["image"]), batch["target"]):
                    if target["boxes"].numel() == 0:
                        continue  # SPG102
                    self.score.update([found], [target])

            def test_step(self, batch, index):
                if batch["relevant"].any():
                    self.mrr.update(self.net(batch["x"]), batch["relevant"], batch["query"])  # SPG305

            def on_validation_epoch_end(self):
                self.log("map", self.score.compute()["map"])
        """,
        *CODES,
    )


def test_updates_of_all() -> None:
    """One update a batch, metrics that are reduced as a whole, and those told not to meet."""
    assert agree(
        """
        import lightning.pytorch as pl
        from torchmetrics import Accuracy
        from torchmetrics.detection import MeanAveragePrecision

        class Detector(pl.LightningModule):
            def __init__(self, net):
                super().__init__()
                self.net, self.score = net, MeanAveragePrecision()
                self.accuracy = Accuracy(task="binary")
                self.own = MeanAveragePrecision(sync_on_compute=False)

            def validation_step(self, batch, index):
                found = self.net(batch["image"])
                self.score.update(found, batch["target"])
                for one, target in zip(found, batch["target"]):
                    self.score.update([one], [target])
                    if target["boxes"].numel() > 0:
                        self.accuracy.update(one["label"], target["label"])
                        self.own.update([one], [target])

            def on_validation_epoch_end(self):
                self.log("map", self.score.compute()["map"])
        """,
        *CODES,
    )
