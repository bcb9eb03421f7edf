"""Keep an exception's traceback without keeping anything that its frames hold.

A traceback holds its frames; a frame holds its locals and, through ``f_back``, the frames of all its callers:
tensors of the failed call, and the whole training loop's, would live as long as the stored error. Every frame
is replaced by a stand-in that tracebacks print alike (file, line, function) and that holds nothing.
Cost: linear in the number of frames; only on the error path.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import CodeType, FrameType, FunctionType, TracebackType

_PACKAGE = f"{Path(__file__).parent}/"
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200
_STAND_IN = compile("def stand_in():\n    yield", __file__, "exec").co_consts[0]


def detach(exc: BaseException) -> None:
    """Replace every frame of ``exc``, of its causes and contexts and of grouped exceptions by a stand-in."""
    for each in chain(exc):
        each.__traceback__ = _detach_traceback(each.__traceback__)


def free_locals(exc: BaseException) -> None:
    """Free the locals of frames that have ended, and keep the frames: models and process groups go away."""
    for each in chain(exc):
        traceback = each.__traceback__
        while traceback is not None:
            _clear(traceback.tb_frame)
            traceback = traceback.tb_next


def chain(exc: BaseException) -> list[BaseException]:
    """``exc``, what it was raised from or while handling, and the members of groups."""
    found: dict[int, BaseException] = {}
    pending: list[BaseException | None] = [exc]
    while pending:
        current = pending.pop()
        if current is None or id(current) in found:
            continue
        found[id(current)] = current
        grouped = getattr(current, "exceptions", ())
        pending += [current.__cause__, current.__context__]
        pending += [member for member in grouped if isinstance(member, BaseException)]
    return list(found.values())


def _clear(frame: FrameType) -> None:
    if not frame.f_code.co_flags & _GENERATOR_FLAGS:  # clearing a suspended one would close it
        with contextlib.suppress(RuntimeError):  # it still runs
            frame.clear()


def _detach_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """The same places with stand-ins for frames; our own frames at the front are left out."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        traceback = traceback.tb_next
    places: list[tuple[CodeType, int]] = []
    while traceback is not None:
        places.append((traceback.tb_frame.f_code, traceback.tb_lineno))
        _clear(traceback.tb_frame)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for code, line in reversed(places):
        kept = TracebackType(kept, _stand_in(code, line), -1, line)
    return kept


def _stand_in(code: CodeType, line: int) -> FrameType:
    """A frame that shows ``code`` at ``line``: of a generator that never ran, so it has no caller either."""
    shown = _STAND_IN.replace(co_filename=code.co_filename, co_firstlineno=line, co_name=code.co_name)
    if sys.version_info >= (3, 11):
        shown = shown.replace(co_qualname=code.co_qualname)
    frame: FrameType = FunctionType(shown, {"__name__": code.co_name})().gi_frame
    return frame
