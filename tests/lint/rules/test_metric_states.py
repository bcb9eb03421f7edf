"""Metrics of the project's own, with lists as states: those that are not concatenated are gathered item by item."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG205", "SPG305", "SPG401")


def test_items_by_own_data() -> None:
    """An image left out, a condition, an empty batch, a list of what was found; named and left-out reductions."""
    assert agree(
        """
        import torch
        import torchmetrics
        from torchmetrics import Metric
        from torchmetrics.utilities import dim_zero_cat

        class Boxes(Metric):
            def __init__(self):
                super().__init__()
                self.add_state("found", default=[], dist_reduce_fx=None)
                self.add_state("scores", [], None)

            def update(self, preds, targets):
                for pred in preds:
                    boxes = pred["boxes"][pred["scores"] > 0.5].reshape(-1, 4)
                    if len(boxes) == 0:
                        continue  # SPG102
                    self.found.append(boxes)
                if preds[0]["scores"].max() > 0.9:
                    self.scores.append(preds[0]["scores"])  # SPG305

        class Words(torchmetrics.Metric):
            def __init__(self):
                super().__init__()
                self.add_state("words", default=[])

            def update(self, texts, mask):
                if mask.sum() == 0:
                    return  # SPG102
                self.words.append(texts)

        class Spread(Metric):
            def __init__(self):
                super().__init__()
                self.add_state("values", default=[], dist_reduce_fx=lambda values: values)

            def update(self, preds, target):
                wrong = preds[preds.argmax(1) != target]
                self.values.extend(wrong.unbind(0))
                for one in wrong:
                    self.values.append(one)  # SPG401
        """,
        *CODES,
    )


def test_items_of_all() -> None:
    """As many items on every rank, states that are concatenated or summed, plain lists, and preconditions."""
    assert agree(
        """
        import torch
        from torchmetrics import Metric
        from torchmetrics.utilities import dim_zero_cat

        class Boxes(Metric):
            def __init__(self, classes=None):
                super().__init__()
                self.add_state("found", default=[], dist_reduce_fx=None)
                self.add_state("joined", default=[], dist_reduce_fx="cat")
                self.add_state("also", default=[], dist_reduce_fx=dim_zero_cat)
                self.add_state("total", default=torch.tensor(0), dist_reduce_fx="sum")
                self.classes, self.seen = classes, []

            def update(self, preds, targets):
                if preds.shape != targets.shape:
                    raise ValueError("shapes differ")
                if len(preds) != len(targets):
                    raise ValueError("lengths differ")
                if not isinstance(preds, torch.Tensor):
                    raise TypeError("no tensor")
                if preds.ndim == 2:
                    preds = preds.argmax(1)
                if self.classes is not None:
                    preds = preds[:, self.classes]
                self.found.append(preds)
                for pred in preds:
                    boxes = pred["boxes"][pred["scores"] > 0.5]
                    self.found.append(boxes)
                    if boxes.shape[0] == 0:
                        continue
                    self.joined.append(boxes)
                    self.also.append(boxes)
                    self.seen.append(boxes)
                    self.total += boxes.shape[0]

            def compute(self):
                return sum(len(one) for one in self.found) / max(1, len(dim_zero_cat(self.joined)))

        class Plain:
            def __init__(self):
                self.found = []

            def update(self, preds):
                if preds.max() > 0:
                    self.found.append(preds)
        """,
        *CODES,
    )
