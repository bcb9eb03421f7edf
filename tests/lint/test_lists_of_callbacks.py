"""Lists of callbacks to which some ranks add: what matters is whether the callback that only they have communicates."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PARTING = ("SPG101", "SPG103", "SPG104", "SPG401")


def test_functions() -> None:
    """A printing hook of the first rank beside a reduction of all, and a reduction of the first rank alone."""
    assert agree(
        """
        import dataclasses
        import torch
        import torch.distributed as dist

        class Trainer:
            def __init__(self):
                self.hooks = []

            def run(self, steps):
                rate = torch.zeros(1)
                for step in range(steps):
                    for hook in self.hooks:
                        hook(rate)

        def total(rate):
            dist.all_reduce(rate)  # SPG104

        def show(rate):
            print(rate.item())

        def shown_by_one():
            trainer = Trainer()
            trainer.hooks.append(total)
            if dist.get_rank() == 0:
                trainer.hooks.append(show)
            trainer.run(3)

        def summed_by_one():
            trainer = Trainer()
            trainer.hooks.append(show)
            if dist.get_rank() == 0:
                trainer.hooks.append(total)
            trainer.run(3)
        """,
        *PARTING,
    )


def test_objects() -> None:
    """The same for objects, in any order, extended by lists and numbered."""
    assert agree(
        """
        import torch.distributed as dist

        class Sync:
            def on_step(self, rate):
                dist.all_reduce(rate)

        class Printer:
            def on_step(self, rate):
                print(rate)

        def printed_by_one(rate):
            callbacks = [Sync()]
            if dist.get_rank() == 0:
                callbacks.append(Printer())
            for callback in callbacks:
                callback.on_step(rate)

        def printed_first(rate):
            callbacks = []
            if dist.get_rank() == 0:
                callbacks.append(Printer())
            callbacks.append(Sync())
            for callback in callbacks:
                callback.on_step(rate)

        def numbered(rate):
            callbacks = [Sync()]
            if dist.get_rank() == 0:
                callbacks += [Printer()]
                callbacks.extend([Printer()])
            for position, callback in enumerate(callbacks):
                callback.on_step(rate)

        def synced_by_one(rate):
            callbacks = [Printer()]
            if dist.get_rank() == 0:
                callbacks.append(Sync())
            for callback in callbacks:
                callback.on_step(rate)  # SPG104

        def alone(rate):
            callbacks = []
            if dist.get_rank() == 0:
                callbacks += [Sync()]
            for callback in callbacks:
                callback.on_step(rate)  # SPG104

        def many(rate, sinks):
            callbacks = [Sync()]
            for sink in range(dist.get_rank()):
                callbacks.append(Sync())
            for callback in callbacks:  # SPG401
                callback.on_step(rate)
        """,
        *PARTING,
    )


def test_which_callback_a_rank_has_more_is_not_known() -> None:
    """Added by a helper, or left out of a list written with None: what an extra callback does is its own business."""
    assert agree(
        """
        import torch.distributed as dist

        class Sync:
            def on_step(self, rate):
                dist.all_reduce(rate)

        class Printer:
            def on_step(self, rate):
                print(rate)

        def register(callbacks, callback):
            callbacks.append(callback)

        def printed_by_one(rate):
            callbacks = [Sync()]
            if dist.get_rank() == 0:
                register(callbacks, Printer())
            for callback in callbacks:
                callback.on_step(rate)

        class Loop:
            def __init__(self, callbacks):
                self.callbacks = []
                for callback in callbacks:
                    if callback is not None:
                        self.callbacks.append(callback)

            def run(self, rate):
                for callback in self.callbacks:
                    callback.on_step(rate)

        def none_where_it_is_not_wanted(rate):
            Loop([Sync(), Printer() if dist.get_rank() == 0 else None]).run(rate)
        """,
        *PARTING,
    )
