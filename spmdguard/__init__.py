"""Keeps distributed PyTorch jobs from hanging: one rank's error becomes an agreed stop with its cause.

Importing this package imports neither torch nor the linter; names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spmdguard.blocks import deferring, try_or_defer
    from spmdguard.checkpoint import PendingCheckpoint, latest_checkpoint, save_checkpoint, start_checkpoint
    from spmdguard.classify import collective, rank_local
    from spmdguard.deferred import defer_error, deferred_error, has_deferred_error, raise_if_deferred_error
    from spmdguard.errors import (
        CollectiveInRankLocalError,
        CommunicationBroken,
        LaunchFailed,
        OtherRanksFailed,
        RanksMissing,
        RanksOutOfStep,
        SpmdguardError,
        StoreUnreachable,
        TeardownTimeout,
        UndecoratedWork,
    )
    from spmdguard.exitcodes import ExitCode
    from spmdguard.failfast import FailFast, fail_fast
    from spmdguard.latch import resume_communication
    from spmdguard.launch import Launched, first_step_done, handshake, init_process_group
    from spmdguard.lifecycle import Run, destroy_process_group, run
    from spmdguard.objects import rank_local_object
    from spmdguard.phases import phase
    from spmdguard.process import barrier, is_main_process, main_process_first
    from spmdguard.reporters import (
        ContextReporter,
        MLflowReporter,
        Reporter,
        ReporterGroup,
        WandbReporter,
        WriterReporter,
    )
    from spmdguard.stop import (
        StopReason,
        StopSource,
        stop_after,
        stop_on_signal,
        stop_reason,
        sync_should_stop,
    )
    from spmdguard.strict import Sighting, StrictReport, strict_mode
    from spmdguard.watch import start_watch

__version__ = "0.1.0"

_ROOMS = {
    "blocks": ("deferring", "try_or_defer"),
    "checkpoint": ("PendingCheckpoint", "latest_checkpoint", "save_checkpoint", "start_checkpoint"),
    "classify": ("collective", "rank_local"),
    "deferred": ("defer_error", "deferred_error", "has_deferred_error", "raise_if_deferred_error"),
    "errors": (
        "CollectiveInRankLocalError",
        "CommunicationBroken",
        "LaunchFailed",
        "OtherRanksFailed",
        "RanksMissing",
        "RanksOutOfStep",
        "SpmdguardError",
        "StoreUnreachable",
        "TeardownTimeout",
        "UndecoratedWork",
    ),
    "exitcodes": ("ExitCode",),
    "failfast": ("FailFast", "fail_fast"),
    "latch": ("resume_communication",),
    "launch": ("Launched", "first_step_done", "handshake", "init_process_group"),
    "lifecycle": ("Run", "destroy_process_group", "run"),
    "objects": ("rank_local_object",),
    "phases": ("phase",),
    "process": ("barrier", "is_main_process", "main_process_first"),
    "reporters": (
        "ContextReporter",
        "MLflowReporter",
        "Reporter",
        "ReporterGroup",
        "WandbReporter",
        "WriterReporter",
    ),
    "stop": (
        "StopReason",
        "StopSource",
        "stop_after",
        "stop_on_signal",
        "stop_reason",
        "sync_should_stop",
    ),
    "watch": ("start_watch",),
    "strict": ("Sighting", "StrictReport", "strict_mode"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "CollectiveInRankLocalError",
    "CommunicationBroken",
    "ContextReporter",
    "ExitCode",
    "FailFast",
    "LaunchFailed",
    "Launched",
    "MLflowReporter",
    "OtherRanksFailed",
    "PendingCheckpoint",
    "RanksMissing",
    "RanksOutOfStep",
    "Reporter",
    "ReporterGroup",
    "Run",
    "Sighting",
    "SpmdguardError",
    "StopReason",
    "StopSource",
    "StoreUnreachable",
    "StrictReport",
    "TeardownTimeout",
    "UndecoratedWork",
    "WandbReporter",
    "WriterReporter",
    "__version__",
    "barrier",
    "collective",
    "defer_error",
    "deferred_error",
    "deferring",
    "destroy_process_group",
    "fail_fast",
    "first_step_done",
    "handshake",
    "has_deferred_error",
    "init_process_group",
    "is_main_process",
    "latest_checkpoint",
    "main_process_first",
    "phase",
    "raise_if_deferred_error",
    "rank_local",
    "rank_local_object",
    "resume_communication",
    "run",
    "save_checkpoint",
    "start_checkpoint",
    "start_watch",
    "stop_after",
    "stop_on_signal",
    "stop_reason",
    "strict_mode",
    "sync_should_stop",
    "try_or_defer",
]


def __getattr__(name: str) -> Any:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
