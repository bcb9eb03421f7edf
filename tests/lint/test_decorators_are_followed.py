"""Decorators and hooks of the project's own run where the library or the language runs them."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_long_decorators_with_options_that_try_again() -> None:
    """A decorator is followed at any usual length; a function without a collective may be tried again."""
    assert agree(
        """
        import functools
        import logging
        import time
        import torch.distributed as dist

        log = logging.getLogger(__name__)

        def patiently(times, pause=0.05, factor=2.0):
            '''Try again after an OSError.

            Waits longer each time; gives up with a warning.
            '''

            def wrap(fn):
                @functools.wraps(fn)
                def again(*args, **kwargs):
                    wait = pause
                    for attempt in range(times):
                        try:
                            return fn(*args, **kwargs)
                        except OSError as exc:
                            log.warning("attempt %d: %s", attempt, exc)
                            time.sleep(wait)
                            wait *= factor
                    return None

                return again

            return wrap

        def stubbornly(fn):
            '''Try until it works.'''

            @functools.wraps(fn)
            def again(*args, **kwargs):
                while True:
                    try:
                        return fn(*args, **kwargs)
                    except (OSError, TimeoutError) as exc:
                        log.warning("once more: %s", exc)
                        time.sleep(1.0)

            return again

        def write(path, line):
            with open(path, "a") as f:
                f.write(line)

        class Reporter:
            @stubbornly
            def report(self, loss):
                dist.all_reduce(loss)  # SPG202
                write("mean.log", str(loss))

        @patiently(times=3)
        def report(step, loss):
            mean = loss.clone()
            dist.all_reduce(mean)  # SPG202
            write(f"mean-{dist.get_rank()}.log", f"{step} {mean}")

        @patiently(times=3)
        def keep(step, mean):
            write(f"kept-{dist.get_rank()}.log", f"{step} {mean}")

        def main(losses):
            for step, loss in enumerate(losses):
                report(step, loss)
                Reporter().report(loss)
                dist.all_reduce(loss)
                keep(step, loss)
            dist.barrier()
        """,
        "SPG102",
        "SPG202",
        "SPG203",
        "SPG206",
    )
