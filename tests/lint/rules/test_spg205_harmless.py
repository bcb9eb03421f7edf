"""SPG205: raises that end all ranks alike or none, though the rank seems to decide about them."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RAISES = ("SPG101", "SPG102", "SPG205")


def test_methods_that_subclasses_write() -> None:
    """A method that only says that it is not written is not what runs; one that refuses is."""
    assert agree(
        """
        import torch.distributed as dist

        class Strategy:
            def __call__(self):
                '''Choose the next one.'''
                raise NotImplementedError("__call__ is not there")

            def refuse(self):
                raise ValueError("cannot")

        class Constant(Strategy):
            def __call__(self):
                return 0

        class Loader:
            def __init__(self, strategy: Strategy):
                self.strategy = strategy

            def change(self):
                number = 0
                if dist.get_rank() == 0:
                    number = self.strategy()
                told = [number]
                dist.broadcast_object_list(told)

            def give_up(self):
                if dist.get_rank() == 0:
                    self.strategy.refuse()  # SPG205
                dist.barrier()
        """,
        *RAISES,
    )


def test_members_that_are_asked_for_their_place() -> None:
    """Each rank asks for its place in a group of its own: who is in none is told so, and nobody is."""
    assert agree(
        """
        import torch.distributed as dist

        def place_in(group=None):
            place = dist.get_rank(group)
            if place == -1:
                raise RuntimeError("not a member")
            return place

        def log(text, group):
            if place_in(group) == 0:
                print(text)

        def main(group, x):
            log("begin", group)
            dist.all_reduce(x, group=group)
            dist.barrier()

        def first_refuses(group, x):
            if dist.get_rank(group) == 0:
                raise RuntimeError("first")  # SPG205
            dist.all_reduce(x, group=group)
        """,
        *RAISES,
    )


def test_assertion_errors_that_are_raised() -> None:
    """A ``raise AssertionError`` is meant, be it in a loop or not."""
    assert agree(
        """
        import torch.distributed as dist

        def check(batches):
            if dist.get_rank() == 0:
                for batch in batches:
                    print(batch)
                raise AssertionError("the check is done")  # SPG205
            dist.barrier()
        """,
        *RAISES,
    )
