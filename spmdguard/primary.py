"""Write the error that ends this rank before anything else can hide it: stderr, and torchelastic's file.

torchelastic names as root cause the error file with the smallest whole-second timestamp. A rank that merely
lost its partner says so, and dates its file one second after the failure that it learned of.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any

from spmdguard.current import simulated_values
from spmdguard.format import add_note, escape_text, format_exception_line, format_traceback, format_trail
from spmdguard.group.world import world
from spmdguard.latch import is_communication_failure

_WRITTEN = "__spmdguard_written__"
_SHOWS_ONCE = "__spmdguard_shows_once__"
_INNER_HOOKS = ("before", "old_hook", "old_excepthook")
on_primary_error: list[Callable[[BaseException], str | None]] = []
"""Told of the error before anything else; may know, as text, the first cause that it is a consequence of."""
on_written: list[Callable[[], None]] = []
"""Called when the error of this rank stands on stderr."""
_OPTION_PARSERS = ("/argparse.py", "/click/core.py")
_SIGNS = ("gloo", "nccl", "connection closed", "connection reset", "broken pipe", "timed out", "socket")


def was_written(exc: BaseException) -> bool:
    """Whether ``write_primary_error`` has already shown this exception."""
    return getattr(exc, _WRITTEN, False) is True


def write_primary_error(exc: BaseException, *, since: float | None = None, leaving: bool = True) -> None:
    """Write ``exc`` once to stderr and to ``TORCHELASTIC_ERROR_FILE``, and announce it to the other ranks.

    Args:
        exc: the error that ends this rank.
        since: when it happened, seconds since the epoch; now without it.
        leaving: whether this rank leaves at once; else it still meets the others first.
    """
    if was_written(exc):
        return
    here = world()
    rank = here.rank()
    known = [told for tell in on_primary_error if leaving and (told := tell(exc)) is not None]
    if isinstance(exc, KeyboardInterrupt):
        _write_interruption(exc, rank, known[0] if known else "", since)
    elif known:
        _write_consequence(exc, rank, known[0], since)
    else:
        _write_failure(exc, rank, since)
    _show_once()
    for tell_written in on_written:
        tell_written()


def _show_once() -> None:
    """Have Python say in one line, rather than show once more, that a written error ends the program."""
    before: Any = sys.excepthook
    if simulated_values() is not None or not _only_shows(before) or hasattr(before, _SHOWS_ONCE):
        return

    def hook(kind: type[BaseException], exc: BaseException, found: TracebackType | None) -> None:
        if was_written(exc):
            line = escape_text(format_exception_line(exc), 400)
            if not isinstance(exc, KeyboardInterrupt):
                _write_stderr(f"spmdguard: rank {world().rank()} ends with the error above: {line}")
        else:
            before(kind, exc, found)

    setattr(hook, _SHOWS_ONCE, True)
    sys.excepthook = hook


def _only_shows(hook: Any) -> bool:
    """Whether an exception hook is Python's, or one of torch or of this package around it; others do more than show."""
    if hook is sys.__excepthook__ or hasattr(hook, _SHOWS_ONCE):
        return True
    if not isinstance(hook, FunctionType) or not hook.__module__.startswith(("torch.", "spmdguard.")):
        return False
    inner = dict(zip(hook.__code__.co_freevars, hook.__closure__ or (), strict=True))
    return any(name in inner and _only_shows(inner[name].cell_contents) for name in _INNER_HOOKS)


def _write_failure(exc: BaseException, rank: int, since: float | None) -> None:
    """Write an error that no other rank is known to have caused, and announce it."""
    here = world()
    cause = here.find_announced_failure() if lost_partner(exc) else None
    if cause is None:
        here.announce_failure(format_exception_line(exc)[:2000])
    with contextlib.suppress(Exception):
        setattr(exc, _WRITTEN, True)
    title = f"spmdguard: rank {rank} failed"
    if cause is not None:
        title = f"spmdguard: rank {rank} lost its partner; rank {cause[0]} failed first: {cause[1]}"
        add_note(exc, f"spmdguard: consequence of the failure of rank {cause[0]}: {cause[1]}")
    text = format_traceback(exc)
    _write_stderr(f"{title}\n{_shown(exc, text)}")
    write_error_file(format_exception_line(exc), text, (since or time.time()) + (0 if cause is None else 1))


def _write_consequence(exc: BaseException, rank: int, cause: str, since: float | None) -> None:
    """Write an error that came after another rank's, and most often because of it."""
    with contextlib.suppress(Exception):
        setattr(exc, _WRITTEN, True)
    if is_consequence(exc):
        title, note = f"rank {rank} is a victim; the cause", "consequence, not the cause"
    else:
        title, note = f"rank {rank} failed too; the first cause", "not the first failure"
    add_note(exc, f"spmdguard: {note}: {cause}")
    text = format_traceback(exc)
    _write_stderr(f"spmdguard: {title}: {cause}\n{_shown(exc, text)}")
    write_error_file(format_exception_line(exc), text, (since or time.time()) + 1)


def _write_interruption(exc: KeyboardInterrupt, rank: int, cause: str, since: float | None) -> None:
    """Somebody ended the run, most often on every rank: a line says where this one stood."""
    if not cause:
        world().announce_failure(format_exception_line(exc))
    with contextlib.suppress(Exception):
        setattr(exc, _WRITTEN, True)
    line = (
        f"rank {rank} was interrupted ({escape_text(format_exception_line(exc), 400)}) at {format_trail(exc)}"
    )
    if cause and "KeyboardInterrupt" not in cause:
        line += f"; the first cause: {cause}"
    _write_stderr(f"spmdguard: {line}")
    write_error_file(format_exception_line(exc), format_traceback(exc), (since or time.time()) + bool(cause))


def lost_partner(exc: BaseException) -> bool:
    """Whether an error looks like the consequence of another rank's end: it came out of communication."""
    if is_communication_failure(exc) and not isinstance(exc, RuntimeError):
        return type(exc).__module__.startswith(("spmdguard", "torch"))
    if not isinstance(exc, RuntimeError):
        return False
    text = str(exc).lower()
    return type(exc).__module__.startswith("torch") or any(sign in text for sign in _SIGNS)


def is_consequence(exc: BaseException) -> bool:
    """Whether an error came out of communication with a rank that left, or was raised because of such a one."""
    if isinstance(exc, KeyboardInterrupt):  # it came while this rank was told of the lost connection
        return False
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        if lost_partner(current):
            return True
        seen.add(id(current))
        current = current.__cause__ or current.__context__
    return False


def _shown(exc: BaseException, text: str) -> str:
    """What stderr shows of an error: where a parser of options ended the program it has said why itself."""
    if not isinstance(exc, SystemExit):
        return text
    innermost = exc.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    name = innermost.tb_frame.f_code.co_filename.replace("\\", "/") if innermost is not None else ""
    return f"{format_exception_line(exc)}\n" if name.endswith(_OPTION_PARSERS) else text


def _write_stderr(text: str) -> None:
    try:
        sys.stderr.write(text if text.endswith("\n") else f"{text}\n")
        sys.stderr.flush()
    except Exception:
        return


def write_error_file(message: str, text: str, when: float) -> None:
    """Write ``TORCHELASTIC_ERROR_FILE``, where torchelastic asks for it."""
    name = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not name:
        return
    data = {
        "message": {
            "message": message,
            "extraInfo": {"py_callstack": text, "timestamp": str(int(when))},
        }
    }
    target = Path(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        part.write_text(json.dumps(data), encoding="utf-8")
        part.replace(target)
    except OSError as failure:
        _write_stderr(f"spmdguard: cannot write TORCHELASTIC_ERROR_FILE: {format_exception_line(failure)}")
