"""Look at this process from the watch thread: where its main thread is, and whether that is communication."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType

from spmdguard.format import is_installed_file, is_library_file, short_path
from spmdguard.group.progress import Frame, RecordedCall, recorded_calls
from spmdguard.watch.standing import Call, Place

_MAX_FRAMES = 60
_MAX_PLACES = 8
_COMMUNICATES = (
    "/torch/distributed/",
    "/torch/nn/parallel/distributed.py",
    "/torch/nn/parallel/_replicated_tensor",
    "/torch/cuda/nccl",
    "/spmdguard/group/same_host.py",  # an agreement that torch does not see
)
_NOT_COMMUNICATING = (
    "/torch/distributed/run.py",
    "/torch/distributed/launcher/",
    "/torch/distributed/elastic/",
    "/torch/distributed/checkpoint/filesystem.py",
)
_PLUMBING = {
    "wrapper",
    "_wrapped_call_impl",
    "_call_impl",
    "<lambda>",
    "__torch_function__",
    "decorate_context",
}
_NAMES = {
    "forward": "DDP forward",
    "_pre_forward": "DDP forward",
    "__init__": "construction",
    "agree_on_host": "sync_should_stop",
}


@dataclass(frozen=True)
class Look:
    """The main thread at one instant; ``mark`` changes whenever it has moved."""

    places: tuple[Place, ...]
    operation: str
    mark: int
    cpu_s: float


def look_at(thread_id: int) -> Look | None:
    """The thread's stack; None where it has none (any more)."""
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return None
    places: list[Place] = []
    others: list[Place] = []
    operation, in_library = "", True
    marks: list[int] = []
    for _ in range(_MAX_FRAMES):
        code = frame.f_code
        marks += (id(code), frame.f_lasti)
        kind = _kind_of(code)
        if kind is _USER:
            in_library = False
            if len(places) < _MAX_PLACES:
                places.append(_place(frame))
        elif in_library and kind is _COMMUNICATION and code.co_name not in _PLUMBING:
            operation = code.co_name
        elif kind is _LIBRARY and len(others) < 3 and not is_library_file(code.co_filename):
            others.append(_place(frame))
        if frame.f_back is None:
            break
        frame = frame.f_back
    return Look(
        tuple(places or others), _NAMES.get(operation, operation), hash(tuple(marks)), _cpu_time(thread_id)
    )


def _cpu_time(thread_id: int) -> float:
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread_id))
    except (OSError, AttributeError):
        return 0.0


_USER, _COMMUNICATION, _LIBRARY = "user", "communication", "library"


@lru_cache(maxsize=4096)
def _kind_of(code: CodeType) -> str:
    return kind_of_file(code.co_filename)


@lru_cache(maxsize=4096)
def kind_of_file(filename: str) -> str:
    """``"user"``, ``"communication"`` (torch's), or another ``"library"``."""
    path = filename.replace("\\", "/")
    if any(part in path for part in _COMMUNICATES) and not any(part in path for part in _NOT_COMMUNICATING):
        return _COMMUNICATION
    return _LIBRARY if is_installed_file(filename) else _USER


def _place(frame: FrameType) -> Place:
    return Place(_short(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)


@lru_cache(maxsize=1024)
def _short(filename: str) -> str:
    return short_path(filename)


def places_of(frames: Iterable[Frame]) -> tuple[Place, ...]:
    """The user's frames among those given, innermost first; all others' innermost where there is none."""
    known = list(frames)
    user = [each for each in known if kind_of_file(each[0]) is _USER][:_MAX_PLACES]
    return tuple(Place(_short(file), line, function) for file, line, function in user or known[:1])


def operation_of(frames: Iterable[Frame]) -> str:
    """What these frames, innermost first, wait in, as far as they tell; empty outside communication."""
    operation = ""
    for file, _, function in frames:
        kind = kind_of_file(file)
        if kind is _USER:
            break
        if kind is _COMMUNICATION and function not in _PLUMBING:
            operation = function
    return _NAMES.get(operation, operation)


def places_of_traceback(exc: BaseException) -> tuple[Place, ...]:
    """Where an exception was raised, in the user's code, innermost first; a file that cannot be read is the first."""
    frames: list[Frame] = []
    traceback = exc.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    if isinstance(exc, SyntaxError) and exc.filename and exc.lineno:
        frames.append((exc.filename, exc.lineno, "<module>"))
    return places_of(reversed(frames))


def find_calls(limit: int) -> tuple[Call, ...]:
    """The last calls that torch recorded on this rank; empty where it does not record."""
    return tuple(to_call(each) for each in recorded_calls(limit) or ())


def to_call(recorded: RecordedCall) -> Call:
    """A recorded call with the user's frames alone."""
    return Call(
        group=recorded.group,
        number=recorded.number,
        operation=recorded.operation,
        places=places_of(recorded.frames),
        done=recorded.done,
        point_to_point=recorded.point_to_point,
        began_s=recorded.began_s,
        sizes=recorded.sizes,
    )


def last_seen(calls: Sequence[Call]) -> tuple[Place, ...]:
    """Where the newest recorded call stands that names a line; a look at the stack is older once a rank has ended."""
    return next((call.places for call in reversed(calls) if call.places), ())


def pending_of(calls: Sequence[Call]) -> Call | None:
    """The oldest call that has begun and is not done."""
    return next((call for call in calls if not call.done), None)
