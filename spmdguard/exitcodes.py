"""Exit codes of a guarded process; ``docs/concepts.md`` lists them for users."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """How a guarded process ended, where it did not end by an exception of the program itself.

    SPMD:
        Rank-local: plain data.
        Called by: no one.
        Result: the exit code of one rank.
        Raises on: no rank.
    """

    FINISHED = 0
    """Nothing failed."""
    FAILED = 1
    """The run failed and teardown returned; the code Python gives to an uncaught exception."""
    TEARDOWN_HUNG = 70
    """Nothing had failed before, but teardown did not return within its timeout."""
    FAILED_AND_TEARDOWN_HUNG = 71
    """The run failed, its error was written, and teardown did not return within its timeout."""
    FAILED_FAST = 72
    """``fail_fast`` ended the process at once; its error was written."""
    OUT_OF_MEMORY = 73
    """The same, because memory was exhausted: on the host or on a device."""
    PEER_FAILED = 74
    """Another rank failed or died first; this one waited for it and left."""
    STALLED = 75
    """The run stood still for longer than its limit; a report was written."""
