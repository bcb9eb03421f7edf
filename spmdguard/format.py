"""Text for people: ranks as ranges, places in the user's code, exceptions, and the three-line error body."""

from __future__ import annotations

import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import FrameType, TracebackType

_PACKAGE = str(Path(__file__).parent)
_LIBRARIES = (f"{_PACKAGE}/", "/torch/", "/contextlib.py", "/asyncio/", "/threading.py", "/concurrent/", "<")


def format_ranks(ranks: Iterable[int]) -> str:
    """Compact ranks to ranges: ``[0, 1, 2, 5]`` becomes ``"0-2, 5"``."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def pack_ranks(ranks: Iterable[int]) -> str:
    """Ascending ranks as runs with steps, short for grids too: ``[0, 8, 16, 24, 25]`` becomes ``"0-24/8, 25"``."""
    known = list(ranks)
    texts, start = [], 0
    while start < len(known):
        end = start + 1
        step = known[end] - known[start] if end < len(known) else 1
        while end + 1 < len(known) and known[end + 1] - known[end] == step:
            end += 1
        if end == start + 1 and step != 1:  # two numbers are no run
            end = start
        end = min(end, len(known) - 1)
        if end == start:
            texts.append(str(known[start]))
        else:
            texts.append(f"{known[start]}-{known[end]}" + (f"/{step}" if step != 1 else ""))
        start = end + 1
    return ", ".join(texts)


def name_ranks(ranks: Iterable[int]) -> str:
    """``"rank 3"`` or ``"ranks 0-2, 5"``."""
    known = sorted(set(ranks))
    return f"rank{'' if len(known) == 1 else 's'} {format_ranks(known)}"


def name_ranks_by_host(hosts: Mapping[int, str]) -> str:
    """``{0: "a", 1: "a", 4: "b"}`` becomes ``"ranks 0-1 (host a), rank 4 (host b)"``."""
    ranks_of: dict[str, list[int]] = {}
    for rank, host in sorted(hosts.items()):
        ranks_of.setdefault(host, []).append(rank)
    return ", ".join(f"{name_ranks(ranks)} (host {escape_text(host)})" for host, ranks in ranks_of.items())


def escape_text(text: str, limit: int = 200) -> str:
    """One printable line of at most ``limit`` characters: what could steer a terminal shows as an escape.

    Control characters, line ends, bidirectional overrides and lone surrogates become ``\\x1b`` or ``\\u202e``.
    """
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if cut.isascii() and cut.isprintable():
        return cut
    escaped = "".join(map(_escape, cut))
    return escaped if len(escaped) <= limit else f"{escaped[: limit - 1]}…"


def _escape(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def format_error(title: str, *, saw: str = "", where: str = "", do: str = "") -> str:
    """Title, then what was seen, where, and what to do; empty parts are left out."""
    parts = (("saw:", saw), ("where:", where), ("do:", do))
    return "\n".join([title, *(f"  {label:<6} {text}" for label, text in parts if text)])


def format_exception_line(exc: BaseException) -> str:
    """``"OSError: [Errno 28] No space left on device"``, also for exceptions whose ``__str__`` raises."""
    try:
        text = str(exc)
    except Exception:
        text = "<its text could not be rendered>"
    name = type(exc).__qualname__
    return f"{name}: {text}" if text else name


def format_traceback(exc: BaseException) -> str:
    """Render the traceback, from the first frame that is not ours, and the notes; Python 3.10 prints none itself."""
    try:
        text = "".join(traceback.format_exception(type(exc), exc, without_first_frames(exc.__traceback__)))
    except Exception:
        text = "".join(traceback.format_tb(exc.__traceback__)) + format_exception_line(exc) + "\n"
    notes = "".join(f"{note}\n" for note in getattr(exc, "__notes__", []))
    return text if sys.version_info >= (3, 11) or text.endswith(notes) else text + notes


def _is_own_file(name: str) -> bool:
    return name.startswith(_LIBRARIES[0])


def without_first_frames(
    found: TracebackType | None, is_own: Callable[[str], bool] = _is_own_file
) -> TracebackType | None:
    """The traceback without the frames at its beginning that called the program; ``is_own`` knows their files."""
    while found is not None and found.tb_next is not None:
        if not is_own(found.tb_frame.f_code.co_filename):
            return found
        found = found.tb_next
    return found


def add_note(exc: BaseException, note: str) -> None:
    """``exc.add_note(note)``, also on Python 3.10 and on exceptions that refuse attributes."""
    try:
        if sys.version_info >= (3, 11):
            exc.add_note(note)
        else:
            setattr(exc, "__notes__", [*getattr(exc, "__notes__", []), note])  # noqa: B010 - not a declared attribute
    except Exception:
        return


def format_place(frame: FrameType | None) -> str:
    """``"train.py:42 in main"`` with the path relative to the working directory where it lies below it."""
    if frame is None:
        return "unknown place"
    return f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"


def short_path(filename: str) -> str:
    """The path relative to the working directory where it lies below it, else unchanged."""
    try:
        return str(Path(filename).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return filename


def find_user_frame() -> FrameType | None:
    """The innermost frame of the calling thread that is neither ours, torch's nor plumbing of Python."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def format_trail(exc: BaseException, limit: int = 3) -> str:
    """Where it was raised, in the user's code, innermost first: ``"train.py:8 in step < train.py:19 in main"``."""
    frames = [(found.tb_frame.f_code, found.tb_lineno) for found in _chain_of(exc.__traceback__)]
    own = [each for each in frames if not is_installed_file(each[0].co_filename)] or frames
    texts = [f"{short_path(code.co_filename)}:{line} in {code.co_name}" for code, line in reversed(own)]
    return " < ".join(texts[:limit]) or "an unknown place"


def _chain_of(found: TracebackType | None) -> Iterator[TracebackType]:
    while found is not None:
        yield found
        found = found.tb_next


def is_installed_file(filename: str) -> bool:
    """Whether a source file is none of the user's: of an installed package, of Python, or plumbing."""
    path = filename.replace("\\", "/")
    installed = "/site-packages/" in path or "/dist-packages/" in path
    return installed or is_library_file(filename) or path.startswith(_library_folders())


@lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    """Where Python itself and installed packages live."""
    paths = sysconfig.get_paths()
    found = {paths.get(name, "") for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= {*getattr(site, "getsitepackages", list)(), site.getusersitepackages() or ""}
    return tuple(f"{path}/".replace("\\", "/") for path in sorted(found) if path)


def is_library_file(filename: str) -> bool:
    """Whether a source file belongs to this package, to torch, or to plumbing of Python."""
    path = filename.replace("\\", "/")
    return (
        path.startswith(_LIBRARIES[0])
        or path.startswith("<")
        or any(part in path for part in _LIBRARIES[1:-1])
    )
