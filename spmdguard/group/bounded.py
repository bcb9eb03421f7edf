"""Run a call that may block for ever in a helper thread, and wait for it no longer than a timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class DidNotReturn(Exception):
    """The call did not return within its timeout; its thread is left behind."""


def call_bounded(call: Callable[[], Any], timeout_s: float, name: str) -> Any:
    """The result of ``call``, or its exception.

    Raises:
        DidNotReturn: it was still running after ``timeout_s`` seconds.
    """
    outcome: list[tuple[bool, Any]] = []

    def helper() -> None:
        try:
            outcome.append((True, call()))
        except BaseException as exc:
            outcome.append((False, exc))

    thread = threading.Thread(target=helper, name=f"spmdguard {name}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not outcome:
        raise DidNotReturn(name)
    done, value = outcome[0]
    if not done:
        raise value
    return value
