"""Stopping together: ranks agree once a step, and signals, time limits and deferred errors ask for it."""

from spmdguard.stop.agreement import drain, forget_pending, stop_reason, sync_should_stop
from spmdguard.stop.reason import StopReason
from spmdguard.stop.sources import StopSource, stop_after, stop_on_signal

__all__ = [
    "StopReason",
    "StopSource",
    "drain",
    "forget_pending",
    "stop_after",
    "stop_on_signal",
    "stop_reason",
    "sync_should_stop",
]
