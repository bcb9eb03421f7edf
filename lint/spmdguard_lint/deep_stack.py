"""A stack as deep as source text may nest: sums of thousands of terms, chains of `elif`, long method chains.

The analysis follows the tree by recursion. Python's default limit ends that a few hundred levels down; here
it runs on a thread of its own with a large stack, of which only what is used is ever taken from memory.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

_R = TypeVar("_R")

STACK_BYTES = 512 * 1024 * 1024
RECURSION_LIMIT = 100_000


def with_deep_stack(call: Callable[[], _R]) -> _R:
    """What ``call`` returns or raises, run where recursion may go ``RECURSION_LIMIT`` deep."""
    results: list[_R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # handed on to the caller's thread, whatever it is
            errors.append(error)

    limit = sys.getrecursionlimit()
    thread = threading.Thread(target=run, name="spmdguard-analysis", daemon=True)
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        _start(thread)
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]


def _start(thread: threading.Thread) -> None:
    """Start with the large stack, or the largest that the system grants."""
    before = threading.stack_size()
    size = STACK_BYTES
    try:
        while True:
            try:
                threading.stack_size(size)
                thread.start()
                return
            except (RuntimeError, ValueError):
                if size <= 16 * 1024 * 1024:
                    raise
                size //= 2
    finally:
        threading.stack_size(before)
