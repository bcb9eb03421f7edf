"""A rank that is unknown at first: ``-1`` or None until some function sets it, on all ranks alike."""

from __future__ import annotations

from spmdguard_lint.rules.spg205_raise_under_rank_varying_condition import set_later
from spmdguard_lint.values.value import SET_LATER, choice, constant, symbol

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG205")


def test_whether_the_rank_is_set_is_the_same_on_all_ranks() -> None:
    """Guards against a second start ask whether the variable is still what it was; who it is comes behind."""
    assert agree(
        """
        import os

        import torch.distributed as dist

        _LOCAL_RANK = -1
        _LOCAL_SIZE = -1
        _RANK = -1

        def enable():
            global _LOCAL_RANK, _LOCAL_SIZE
            if _LOCAL_RANK >= 0 or _LOCAL_SIZE >= 0:
                raise RuntimeError("already enabled")
            dist.barrier()
            _LOCAL_RANK = int(os.environ["LOCAL_RANK"])
            _LOCAL_SIZE = int(os.environ["LOCAL_WORLD_SIZE"])

        def enable_once():
            global _RANK
            if _RANK != -1:
                return
            dist.barrier()
            _RANK = dist.get_rank()

        def first_only():
            if _RANK == 0:
                dist.barrier()  # SPG101

        def all_but_the_first():
            if _RANK <= 0:
                raise RuntimeError("first")  # SPG205
            dist.barrier()
        """,
        *CODES,
    )


def test_fields_that_a_method_sets() -> None:
    """The same of a field that ``__init__`` sets to ``-1`` and another method to the rank."""
    assert agree(
        """
        import torch.distributed as dist

        class Session:
            def __init__(self):
                self.rank = -1

            def start(self):
                if self.rank >= 0:
                    raise RuntimeError("started twice")
                dist.barrier()
                self.rank = dist.get_rank()

            def start_quietly(self):
                if self.rank != -1:
                    return
                dist.barrier()
                self.rank = dist.get_rank()

            def end(self):
                if self.rank > 0:
                    return  # SPG102
                dist.barrier()
        """,
        *CODES,
    )


def test_a_condition_too_long_to_be_kept() -> None:
    """A part that has collapsed to a number is no variable that is set later; one that stands beside it is found."""
    collapsed = symbol(1267)
    assert not set_later(collapsed)
    assert set_later(choice(collapsed, symbol((SET_LATER, "RANK")), constant(-1)))


def test_a_rank_that_is_no_rank_is_looked_up_in_a_tuple() -> None:
    """``rank=-1`` switches off what a helper does for ranks that are not in ``(-1, 0)``."""
    assert agree(
        """
        import contextlib
        import os

        import torch.distributed as dist

        RANK = int(os.environ["RANK"])
        LOCAL_RANK = int(os.environ["LOCAL_RANK"])

        @contextlib.contextmanager
        def first(local_rank):
            if local_rank not in [-1, 0]:
                dist.barrier()
            yield
            if local_rank == 0:
                dist.barrier()

        def load(rank):
            with first(rank):
                return 1

        def main():
            load(LOCAL_RANK)
            if RANK in {-1, 0}:
                load(-1)
            dist.barrier()

        def bad():
            if RANK in {-1, 0}:
                load(2)  # SPG104
            dist.barrier()
        """,
        *CODES,
        "SPG104",
    )
