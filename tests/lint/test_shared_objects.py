"""Objects behind module-level names: what functions change in them, one rank may have changed alone."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG302", "SPG308")


@pytest.mark.parametrize(
    ("made", "set_it", "asked"),
    [
        ('{"stop": False}', 'STATE["stop"] = True', 'STATE["stop"]'),
        ("dict(stop=False)", 'STATE["stop"] = True', 'STATE["stop"]'),
        ("SimpleNamespace(stop=False)", "STATE.stop = True", "STATE.stop"),
        ("Flags()", "STATE.stop = True", "STATE.stop"),
        ("[False]", "STATE[0] = True", "STATE[0]"),
    ],
)
def test_flags_kept_in_an_object(made: str, set_it: str, asked: str) -> None:
    """A flag in a dict, a list or an object of the module, set by the clock or in a signal handler."""
    assert agree(
        f"""
        import signal
        import time
        from types import SimpleNamespace
        import torch.distributed as dist

        class Flags:
            def __init__(self):
                self.stop = False

        STATE = {made}

        def here(batches):
            for batch in batches:
                if time.time() > 100:
                    {set_it}
                if {asked}:  # SPG302
                    break
                dist.all_reduce(batch)

        def watch():
            if time.time() > 100:
                {set_it}

        def through_a_call(batches):
            for batch in batches:
                watch()
                if {asked}:  # SPG302
                    break
                dist.all_reduce(batch)

        def on_signal(number, frame):
            {set_it}

        def by_signal(batches):
            signal.signal(signal.SIGTERM, on_signal)
            for batch in batches:
                if {asked}:  # SPG308
                    break
                dist.all_reduce(batch)

        def alike(batches, limit):
            for number, batch in enumerate(batches):
                if number > limit:
                    {set_it}
                if {asked}:
                    break
                dist.all_reduce(batch)
        """,
        *CODES,
    )


def test_what_is_read_through_a_call_is_what_was_left() -> None:
    """A function that only reads the object is read anew where the object has changed."""
    assert agree(
        """
        import time
        import torch.distributed as dist

        STATE = {"step": 0, "due": False, "mode": "train"}

        def due():
            return STATE["due"]

        def mode():
            return STATE["mode"]

        def main(batches):
            for batch in batches:
                STATE["step"] += 1
                if due():  # SPG302
                    dist.barrier()
                STATE["due"] = time.time() > 100
                if mode() == "eval":
                    dist.barrier()
                if STATE["step"] > 3:
                    break
        """,
        *CODES,
    )
