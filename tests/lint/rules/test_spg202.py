"""SPG202: handlers that go on after a body with collectives."""

from __future__ import annotations

import textwrap

import pytest

from tests.lint.rules.marked import agree

HANDLERS = ("SPG102", "SPG202", "SPG203", "SPG206")


def test_handlers_that_go_on() -> None:
    """Continue, return, a retry, a flag, `suppress`, and a manager that swallows."""
    assert agree(
        """
        import contextlib
        import logging
        import torch.distributed as dist

        def skips(loader, model):
            for batch in loader:
                try:
                    loss = model(batch)
                    dist.all_reduce(loss)
                except Exception:
                    logging.exception("skipped")
                    continue  # SPG202

        def returns(model, batch):
            try:
                loss = model(batch)
                dist.all_reduce(loss)
            except RuntimeError as error:
                print(error)
                return None  # SPG202
            dist.barrier()
            return loss

        def goes_on(model, batch):
            try:
                dist.all_reduce(model(batch))
            except:  # SPG202
                pass
            dist.barrier()

        def retries(step, batch):
            for attempt in range(3):
                try:
                    dist.all_reduce(step(batch))
                    break
                except Exception:  # SPG202
                    print("again", attempt)

        def suppressed(step, batches):
            for batch in batches:
                with contextlib.suppress(Exception):  # SPG202
                    loss = step(batch)
                    dist.all_reduce(loss)
        """,
        *HANDLERS,
    )


def test_flag_of_an_exception_decides() -> None:
    """A collective that runs only where no exception was caught."""
    assert agree(
        """
        import torch.distributed as dist

        def load(path, state):
            ok = True
            try:
                state = open(path).read()
            except OSError:
                ok = False
            if ok:
                dist.barrier()  # SPG202
        """,
        *HANDLERS,
    )


def test_right_handlers_are_silent() -> None:
    """Raising again, leaving, local work alone in the body, a shared verdict, optional imports."""
    assert agree(
        """
        import sys
        import torch
        import torch.distributed as dist
        try:
            import apex
        except ImportError:
            apex = None

        def reraises(model, batch):
            try:
                dist.all_reduce(model(batch))
            except Exception as error:
                print("failed on", dist.get_rank())
                raise RuntimeError("step failed") from error

        def leaves(model, batch):
            try:
                dist.all_reduce(model(batch))
            except Exception:
                sys.exit(1)

        def local_only(path, x):
            try:
                text = open(path).read()
            except OSError:
                text = ""
            dist.all_reduce(x)
            return text

        def voted(path, x):
            failed = torch.zeros(1)
            try:
                open(path).read()
            except OSError:
                failed.fill_(1)
            dist.all_reduce(failed, op=dist.ReduceOp.MAX)
            if failed.item():
                return None
            dist.all_reduce(x)

        def optional(x):
            if apex is not None:
                dist.barrier()
        """,
        *HANDLERS,
    )


def test_known_miss_narrow_handlers() -> None:
    """A handler for one narrow class around collectives is taken for ordinary control flow."""
    assert agree(
        """
        import torch.distributed as dist

        def lookup(table, key, x):
            try:
                value = table[key]
                dist.all_reduce(value)
            except KeyError:
                value = x
            return value
        """,
        *HANDLERS,
    )


def test_an_interrupt_is_caught_before_a_collective() -> None:
    """Ctrl-C reaches ranks at different lines: who catches it must not go on to a collective."""
    for handler, after in (
        ("print(step)", "dist.barrier()"),
        ("pass", "save(x)"),
        ("save(x)", "pass"),
        ("return save(x)", "pass"),
    ):
        mark = "  # SPG202" if handler.startswith("return") else ""
        clause = "" if mark else "  # SPG202"
        assert agree(
            f"""
            import torch
            import torch.distributed as dist

            def save(x):
                if dist.get_rank() == 0:
                    torch.save(x, "last.pt")
                dist.barrier()

            def train(x, steps):
                step = 0
                try:
                    for step in range(steps):
                        dist.all_reduce(x)
                except KeyboardInterrupt:{clause}
                    {handler}{mark}
                {after}
            """,
            "SPG202",
        )


def test_an_interrupt_that_ends_the_run_is_silent() -> None:
    """After an interrupt a rank may leave, clean up locally, destroy the group or raise again."""
    for handler in ("print('stopped')", "sys.exit(1)", "raise", "print('stopped'); raise SystemExit(130)"):
        assert agree(
            f"""
            import sys
            import torch.distributed as dist

            def main(x, steps):
                dist.init_process_group("gloo")
                try:
                    for step in range(steps):
                        dist.all_reduce(x)
                except KeyboardInterrupt:
                    {handler}
                dist.destroy_process_group()
            """,
            "SPG202",
        )


EXITS = """
    import logging

    import torch.distributed as dist

    class Phase:
        def __init__(self, strict):
            self.strict = strict

        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            BODY

    def build(path):
        return open(path).read()

    def main(path, x):
        with Phase(path):
            build(f"{path}-{dist.get_rank()}")
        dist.all_reduce(x)
"""


@pytest.mark.parametrize(
    "body",
    [
        "if kind is not None:\n                return True  # SPG202\n            dist.barrier()",
        "if kind:\n                logging.info(error)\n                return True  # SPG202\n"
        "            dist.barrier()\n            return False",
        "if error is None:\n                dist.barrier()\n            return kind is not None  # SPG202",
        "if not kind:\n                dist.barrier()\n                return None\n            return True  # SPG202",
    ],
)
def test_exit_swallows_past_its_barrier(body: str) -> None:
    """``__exit__`` of a rank whose block has failed answers True, and leaves out the barrier of the others."""
    assert agree(EXITS.replace("BODY", body), "SPG202")


@pytest.mark.parametrize(
    "body",
    [
        "dist.barrier()\n            return True",
        "if kind is not None:\n                return False\n            dist.barrier()",
        "if kind is None:\n                dist.barrier()\n            return False",
        "if kind is not None:\n                return self.strict\n            dist.barrier()",
        "logging.info(error)\n            return True",
    ],
)
def test_exit_that_meets_or_lets_go_on(body: str) -> None:
    """The barrier is called in any case, the error goes on, or what is answered is not known."""
    assert agree(EXITS.replace("BODY", body), "SPG202")


def test_wrapper_that_tries_again() -> None:
    """The clause of a decorator or a helper knows nothing of the function: the report stands at its collective."""
    assert agree(
        """
        import functools

        import torch.distributed as dist

        def retry(times):
            def outer(function):
                @functools.wraps(function)
                def inner(*args, **kwargs):
                    for attempt in range(times):
                        try:
                            return function(*args, **kwargs)
                        except OSError:
                            print("again", attempt)
                return inner
            return outer

        def attempt(function, *args):
            try:
                return function(*args)
            except OSError as error:
                print(error)

        @retry(3)
        def publish(path, parts, x):
            dist.all_gather_object(parts, x)  # SPG202
            open(path, "a").write(str(parts))

        def share(path, x):
            dist.all_reduce(x)  # SPG202
            open(path, "a").write(str(x))

        @retry(3)
        def note(path, parts):
            open(path, "a").write(str(parts))

        def main(path, parts, x):
            publish(path, parts, x)
            attempt(share, path, x)
            note(path, parts)
            dist.barrier()
        """,
        "SPG202",
    )


START = """
import os
import sys
import torch.distributed as dist

def train():
    dist.init_process_group("gloo")
    dist.barrier()
"""


@pytest.mark.parametrize(
    "end",
    [
        """
        def main():
            code = 1
            try:
                train()
                code = 0
            except Exception as error:
                print(error)
            finally:
                sys.stdout.flush()
                os._exit(code)
        """,
        """
        def main():
            done = False
            try:
                train()
                done = True
            except Exception as error:
                print(error)
            sys.exit(0 if done else 3)
        """,
        """
        def main():
            failed = None
            try:
                train()
            except Exception as error:
                failed = error
            dist.destroy_process_group()
            if failed is not None:
                raise failed
        """,
        """
        def main():
            try:
                train()
            except Exception as error:
                print(error)
                return 1
            return 0

        if __name__ == "__main__":
            sys.exit(main())
        """,
    ],
)
def test_a_failure_that_the_exit_status_tells(end: str) -> None:
    """The status of `os._exit` in `finally`, of `sys.exit` behind, a raise of what was kept, a returned status."""
    assert agree(START + textwrap.dedent(end), "SPG202")


@pytest.mark.parametrize(
    "end",
    [
        """
        def main():
            try:
                train()
            except Exception as error:  # SPG202
                print(error)
            sys.exit(0)
        """,
        """
        def main(steps):
            try:
                train()
            except Exception as error:  # SPG202
                print(error)
            if steps > 3:
                raise ValueError(steps)
        """,
        """
        def main():
            code = 0
            try:
                train()
            except Exception as error:  # SPG202
                code = 1
            dist.barrier()
            sys.exit(code)
        """,
        """
        def main():
            for attempt in range(3):
                try:
                    train()
                    return
                except Exception as error:  # SPG202
                    print(error)
            raise RuntimeError("failed three times")
        """,
        """
        def main():
            try:
                train()
            except Exception as error:
                print(error)
                return 1  # SPG202
            return 0

        if __name__ == "__main__":
            main()
        """,
    ],
)
def test_a_failure_that_nothing_tells(end: str) -> None:
    """Success, a raise for something else, a meeting before the exit, another round, a status that is dropped."""
    assert agree(START + textwrap.dedent(end), "SPG202")


def test_suppress_of_nothing() -> None:
    """`suppress()` without a class lets all exceptions go on: some use it for the manager that does nothing."""
    assert agree(
        """
        from contextlib import suppress
        from contextlib import suppress as empty_context

        import torch.distributed as dist

        def at_once(x):
            with suppress():
                load(x)
                dist.all_reduce(x)
            dist.barrier()

        def chosen(model, x, accumulate):
            context = model.no_sync() if accumulate else empty_context()
            with context:
                load(x)
                dist.all_reduce(x)
            dist.barrier()

        def something(x, errors):
            with suppress(*errors):  # SPG202
                load(x)
                dist.all_reduce(x)
            dist.barrier()

        def chosen_too(x, quiet):
            context = suppress(RuntimeError) if quiet else empty_context()
            with context:  # SPG202
                load(x)
                dist.all_reduce(x)
            dist.barrier()
        """,
        "SPG202",
    )
