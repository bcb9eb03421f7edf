"""SPG207: collectives inside code that is declared rank-local."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_every_form_of_deferral() -> None:
    """Decorated functions and methods, blocks and calls, with the collective in sight or behind a call."""
    assert agree(
        """
        import spmdguard
        import torch.distributed as dist
        from spmdguard import deferring, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(x):
            dist.all_reduce(x)  # SPG207

        @rank_local(name="report")
        def report(x):
            mean(x)
            return x

        def mean(x):
            dist.all_reduce(x)  # SPG207

        class Meter:
            @spmdguard.rank_local
            def send(self, x):
                dist.barrier()  # SPG207

        def block(x):
            with deferring("save"):
                dist.broadcast(x, src=0)  # SPG207

        def call(x):
            dist.barrier()
            try_or_defer(share, x)

        def share(x):
            dist.broadcast(x, src=0)  # SPG207

        def agreement(x):
            dist.barrier()
            with deferring("save"):
                sync_should_stop()  # SPG207
        """,
        "SPG207",
    )


def test_local_work_is_silent() -> None:
    """Deferred local work, and collectives outside of it."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import collective, deferring, rank_local, try_or_defer

        @rank_local
        def log(tracker, x):
            tracker.log(x)

        @collective
        def mean(x):
            dist.all_reduce(x)
            return x

        def train(tracker, x):
            value = mean(x)
            log(tracker, value)
            with deferring("save"):
                open("x", "w").write("1")
            dist.barrier()
            try_or_defer(print, value)
        """,
        "SPG207",
    )
