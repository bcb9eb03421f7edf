"""Keep an exception's traceback without keeping the locals of the frames that failed.

A traceback holds its frames and a frame holds its locals: tensors of the failed call would live as long as
the stored error. Frames that have ended are cleared. Frames that still run cannot be cleared, and would be
held after they end; they are replaced by stand-ins that show the same file, line and function.
Cost: linear in the number of frames; only on the error path.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType, TracebackType

_PACKAGE = f"{Path(__file__).parent}/"
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200


def detach(exc: BaseException) -> None:
    """Free the locals of every frame of ``exc``, of its causes and contexts and of grouped exceptions."""
    seen: set[int] = set()
    pending: list[tuple[BaseException, bool]] = [(exc, True)]
    while pending:
        current, left_its_frames = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = _detach_traceback(current.__traceback__, left_its_frames)
        chained = [(current.__cause__, False), (current.__context__, False)]
        chained += [(member, False) for member in getattr(current, "exceptions", ())]
        pending.extend((other, left) for other, left in chained if isinstance(other, BaseException))


def _detach_traceback(traceback: TracebackType | None, left_its_frames: bool) -> TracebackType | None:
    entries: list[TracebackType] = []
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        traceback = traceback.tb_next
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        frame = entry.tb_frame
        if _clear(frame, left_its_frames):
            kept = TracebackType(kept, frame, entry.tb_lasti, entry.tb_lineno)
        else:
            kept = TracebackType(kept, _stand_in(frame.f_code, entry.tb_lineno), -1, entry.tb_lineno)
    return kept


def _clear(frame: FrameType, left: bool) -> bool:
    """Clear a frame that has ended; False where it still runs.

    A generator frame in a chained exception may be suspended, and clearing would close it: it counts as
    running. The exception itself has left all its frames.
    """
    if not left and frame.f_code.co_flags & _GENERATOR_FLAGS:
        return False
    try:
        frame.clear()
    except RuntimeError:
        return False
    return True


def _stand_in(code: CodeType, line: int) -> FrameType:
    """A frame without locals that tracebacks print like one of ``code`` at ``line``."""
    shown = compile("frames.append(get_frame())", code.co_filename, "exec")
    shown = shown.replace(co_firstlineno=line, co_name=code.co_name)
    if sys.version_info >= (3, 11):
        shown = shown.replace(co_qualname=code.co_qualname)
    frames: list[FrameType] = []
    names = {"frames": frames, "get_frame": sys._getframe, "__name__": code.co_name}
    exec(shown, names)
    names.clear()
    return frames.pop()
