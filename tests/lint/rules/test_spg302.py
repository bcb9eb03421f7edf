"""SPG302: collectives that each rank's own clock decides on."""

from __future__ import annotations

from tests.lint.rules.marked import agree

TIME = ("SPG101", "SPG102", "SPG302", "SPG305", "SPG402")


def test_clocks_decide() -> None:
    """Intervals, deadlines, loops that end on time, dates, through objects and helpers."""
    assert agree(
        """
        import datetime
        import time
        from time import monotonic
        import torch.distributed as dist

        def interval(steps, every, x):
            last = time.time()
            for step in range(steps):
                dist.all_reduce(x)
                if time.time() - last > every:  # SPG302
                    dist.barrier()
                    last = time.time()

        def deadline(xs, limit):
            start = monotonic()
            for x in xs:
                if monotonic() - start >= limit:  # SPG302
                    break
                dist.all_reduce(x)

        def loop(x, end):
            while time.perf_counter() < end:  # SPG302
                dist.all_reduce(x)

        def date(x):
            if datetime.datetime.now().hour == 3:  # SPG302
                dist.barrier()

        class Budget:
            def __init__(self, limit):
                self.end = time.time() + limit

            def over(self):
                return time.time() > self.end

        def by_object(xs, limit):
            budget = Budget(limit)
            for x in xs:
                dist.all_reduce(x)
                if budget.over():  # SPG302
                    return
        """,
        *TIME,
    )


def test_shared_or_harmless_clocks_are_silent() -> None:
    """A decision that rank 0 makes for all, a clock that is only printed, and no collective at stake."""
    assert agree(
        """
        import time
        import torch
        import torch.distributed as dist

        def shared(xs, limit):
            start = time.time()
            for x in xs:
                over = torch.tensor(int(time.time() - start > limit))
                dist.broadcast(over, src=0)
                if over.item():
                    break
                dist.all_reduce(x)

        def printed(xs):
            for x in xs:
                start = time.time()
                dist.all_reduce(x)
                print(time.time() - start)

        def local(xs, every):
            last = time.time()
            for x in xs:
                dist.all_reduce(x)
                if time.time() - last > every:
                    print("still here")
                    last = time.time()
        """,
        *TIME,
    )
