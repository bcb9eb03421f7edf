"""Engines that are unpacked with a star, and used in methods that call no collective by name."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ENDS = ("SPG102", "SPG303", "SPG402")


def test_engines_unpacked_with_a_star() -> None:
    """Loops over forwards of a sharded engine that end where this rank's own answers do."""
    assert agree(
        """
        import deepspeed
        import torch
        import torch.distributed as dist

        CONFIG = {"zero_optimization": {"stage": 3}}

        class Writer:
            def __init__(self, model):
                self.engine, *_ = deepspeed.initialize(model=model, config=CONFIG)

            def most_likely(self, ids, end):
                for _ in range(64):
                    token = self.engine(ids).argmax(-1)
                    ids = torch.cat([ids, token], dim=1)
                    if (token == end).all():
                        break  # SPG102

            def drawn(self, ids, end):
                over = torch.zeros(ids.size(0), dtype=torch.bool)
                for _ in range(64):
                    token = torch.multinomial(self.engine(ids).softmax(-1), 1).squeeze(1)
                    over |= token == end
                    if over.all():
                        break  # SPG303

            def all_over(self, ids, end):
                for _ in range(64):
                    token = self.engine(ids).argmax(-1)
                    over = (token == end).all().int()
                    dist.all_reduce(over, op=dist.ReduceOp.MIN)
                    if over.item():
                        break

            def to_the_end(self, ids, end):
                for _ in range(64):
                    ids = torch.cat([ids, self.engine(ids).argmax(-1)], dim=1)
        """,
        *ENDS,
    )


def test_the_rest_is_no_engine() -> None:
    """What a star takes up communicates nothing by its calls; the name between other names still does."""
    assert agree(
        """
        import deepspeed

        class Trainer:
            def __init__(self, model):
                self.zero, self.opt, *self.rest = deepspeed.initialize(
                    model=model, config={"zero_optimization": {"stage": 3}}
                )

            def until_it_is_small(self, batches):
                for batch in batches:
                    if self.zero(batch).mean() < 0.1:
                        return  # SPG102

            def told(self, batches):
                for batch in batches:
                    if self.rest(batch):
                        return
        """,
        *ENDS,
    )
