"""Flight-recorder dumps of torch, JSON or binary, as evidence: which collective each rank was in, and where.

torch writes its dumps in the pickle format. They are never unpickled: the file is read opcode by opcode, and only
those that build plain data (dicts, lists, tuples, text, numbers) are known; anything else ends the reading.
"""

from __future__ import annotations

import json
import pickletools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spmdguard.triage.events import Event
from spmdguard.triage.lines import Line, UnreadableLog
from spmdguard.triage.patterns import Pattern
from spmdguard.triage.tags import Tag
from spmdguard.triage.tracebacks import Frame

MAX_BYTES = 256 * 1024 * 1024
_RANK = re.compile(r"(\d+)(?:\.\w+)?$")
_PATTERN = Pattern(
    "flight-recorder",
    re.compile(r"(?!)"),
    "parted",
    "flight recorder: in {operation} (number {sequence}), {state}",
    checks=("divergence", "hang"),
    keep=("operation", "sequence", "state"),
)
_MARK = object()


class NotPlainData(ValueError):
    """A dump that holds more than plain data, or is damaged."""


def is_dump(path: Path) -> bool:
    """Whether a file is a flight-recorder dump, by its first bytes."""
    try:
        with path.open("rb") as file:
            start = file.read(512)
    except OSError:
        return False
    head = start.lstrip()
    return (start[:1] == b"\x80" and b"version" in start) or (
        head[:1] == b"{" and b'"comm_lib_version"' in head
    )


def read_dump(path: Path) -> dict[str, Any]:
    """The dump as plain data.

    Raises:
        UnreadableLog: it cannot be read, is too large, or is no plain data.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableLog(str(path), f"larger than {MAX_BYTES} bytes")
        raw = path.read_bytes()
        data = plain_data(raw) if raw[:1] == b"\x80" else json.loads(raw)
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableLog(str(path), f"no flight-recorder dump: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("entries"), list):
        raise UnreadableLog(str(path), "no flight-recorder dump: it has no entries")
    return data


def dump_event(path: Path, data: dict[str, Any]) -> Event | None:
    """Where the rank of a dump stood: its first collective that was not finished, else its last one."""
    entries = [entry for entry in data["entries"] if isinstance(entry, dict) and not entry.get("is_p2p")]
    if not entries:
        return None
    waiting = [entry for entry in entries if not entry.get("retired") and entry.get("state") != "completed"]
    entry = waiting[0] if waiting else entries[-1]
    found = _RANK.search(path.name)
    rank = data.get("rank", int(found.group(1)) if found else None)
    operation = str(entry.get("profiling_name", "a collective")).split(":", 1)[-1][:80]
    state = ("waiting" if waiting else "finished") + f" ({str(entry.get('state', 'unknown'))[:20]})"
    kept = {"operation": operation, "sequence": str(entry.get("collective_seq_id", "?"))[:20], "state": state}
    line = Line(str(path), 1, "", Tag(rank=rank if isinstance(rank, int) else None))
    text = f"flight recorder: {operation} number {kept['sequence']}, {state}"
    return Event("parted", text, line, str(path), 0, _PATTERN, kept, tuple(_frames(entry)))


def plain_data(raw: bytes) -> Any:
    """What a pickle of plain data holds, built without unpickling.

    Raises:
        NotPlainData: the bytes do more than build plain data, or are cut off.
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for opcode, argument, _ in pickletools.genops(raw):
            if opcode.name == "STOP":
                return stack.pop()
            _do(opcode.name, argument, stack, memo)
    except NotPlainData:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise NotPlainData(f"damaged: {error}") from error
    raise NotPlainData("cut off")


def _do(name: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    if name in _VALUES:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name]())
    elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
        memo[argument] = stack[-1]
    elif name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET", "GET"):
        stack.append(memo[argument])
    elif name in ("APPENDS", "SETITEMS", "TUPLE"):
        items = _since_mark(stack)
        if name == "TUPLE":
            stack.append(tuple(items))
        elif name == "APPENDS":
            stack[-1].extend(items)
        else:
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
    elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
        count = int(name[-1])
        stack[-count:] = [tuple(stack[-count:])]
    elif name == "APPEND":
        value = stack.pop()
        stack[-1].append(value)
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][key] = value
    elif name not in ("PROTO", "FRAME"):
        raise NotPlainData(f"more than plain data ({name})")


_VALUES = frozenset(
    {"BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT"}
) | {
    "BINBYTES",
    "SHORT_BINBYTES",
    "BINSTRING",
    "SHORT_BINSTRING",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINUNICODE8",
    "UNICODE",
}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}


def _since_mark(stack: list[Any]) -> list[Any]:
    for index in range(len(stack) - 1, -1, -1):
        if stack[index] is _MARK:
            items = stack[index + 1 :]
            del stack[index:]
            return items
    raise NotPlainData("damaged: no mark")


def _frames(entry: dict[str, Any]) -> Iterator[Frame]:
    """From the outside in; a dump has the innermost frame first."""
    frames = entry.get("frames")
    for frame in reversed(frames[:200] if isinstance(frames, list) else []):
        if isinstance(frame, dict) and isinstance(frame.get("line"), int):
            yield Frame(
                str(frame.get("filename", ""))[:1000], frame["line"], str(frame.get("name", ""))[:200]
            )
