"""Where one rank stands: what the watch thread saw of it, as data that travels as JSON between processes.

What arrives is untrusted: types are checked, sizes are capped, and text is escaped before it can be shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from spmdguard.format import escape_text, format_ranks

State = Literal["running", "waiting", "raised", "ended", "stopped", "silent", "died", "missing"]
STATES: tuple[State, ...] = get_args(State)
MAX_STANDING_BYTES = 131_072
_MAX_PLACES = 12
_MAX_GROUPS = 64
_MAX_CALLS = 256
_MAX_TEXT = 400
_MAX_NUMBER = 2**53


@dataclass(frozen=True)
class Place:
    """A line of code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True)
class GroupNumber:
    """How many collectives of a process group the rank has begun; its ranks are packed (``pack_ranks``)."""

    name: str
    label: str
    members: str
    number: int | None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the group, ascending."""
        return parse_ranks(self.members)

    def describe(self) -> str:
        """``"group 'dp' (ranks 0-3)"``."""
        return f"group {self.label or self.name!r} (ranks {format_ranks(self.ranks)})"


@dataclass(frozen=True)
class Call:
    """A collective or point-to-point call that the rank has begun; ``places`` innermost first."""

    group: str
    number: int
    operation: str
    places: tuple[Place, ...]
    done: bool
    point_to_point: bool = False
    began_s: float = 0.0
    sizes: str = ""


@dataclass(frozen=True)
class Standing:
    """One rank.

    Attributes:
        rank, local_rank, host, pid: who.
        state: ``waiting`` in communication; ``running`` elsewhere; ``raised`` an exception; ``ended``;
            ``stopped`` by a signal; ``silent``: alive, but its watch thread does not run, so that something
            holds the GIL; ``died`` without a word; ``missing``: nothing was ever heard of it.
        places: its main thread's frames in the user's code, innermost first.
        operation: what it waits in, as far as the stack tells.
        since_s: for how long it has stood there; of one that left, how long ago.
        busy: whether its main thread used the CPU there.
        groups, calls: how far it has come, and the last calls that torch recorded.
        step: calls of ``sync_should_stop``.
        phases: open phases, outermost first.
        failure: the exception as one line; why it left; of one that died the signal, where it is known.
        victim: whether the exception came out of communication with a rank that had left.
        exit_code: where it ended.
        seen_s: age of this information.
    """

    rank: int
    host: str = ""
    pid: int = 0
    local_rank: int = 0
    state: State = "running"
    places: tuple[Place, ...] = ()
    operation: str = ""
    since_s: float = 0.0
    busy: bool = False
    groups: tuple[GroupNumber, ...] = ()
    calls: tuple[Call, ...] = ()
    step: int | None = None
    phases: tuple[str, ...] = ()
    failure: str = ""
    victim: bool = False
    exit_code: int | None = None
    seen_s: float = 0.0

    def number_in(self, group: str) -> int | None:
        """How many collectives of a group it has begun; None where it is not known."""
        return next((each.number for each in self.groups if each.name == group), None)

    def find_group(self, name: str) -> GroupNumber | None:
        """The group of that name, as this rank knows it."""
        return next((each for each in self.groups if each.name == name), None)


def to_data(standing: Standing) -> dict[str, Any]:
    """JSON's types, without what is empty; each file's name stands once."""
    files: dict[str, int] = {}

    def places(found: Iterable[Place]) -> list[list[Any]]:
        return [[files.setdefault(each.file, len(files)), each.line, each.function] for each in found]

    data: dict[str, Any] = {
        "rank": standing.rank,
        "host": standing.host,
        "pid": standing.pid,
        "local_rank": standing.local_rank,
        "state": standing.state,
        "places": places(standing.places),
        "operation": standing.operation,
        "since_s": round(standing.since_s, 3),
        "busy": standing.busy,
        "groups": [[g.name, g.label, g.members, g.number] for g in standing.groups],
        "calls": [
            [c.group, c.number, c.operation, places(c.places), c.done, c.point_to_point, c.began_s, c.sizes]
            for c in standing.calls
        ],
        "step": standing.step,
        "phases": list(standing.phases),
        "failure": standing.failure,
        "victim": standing.victim,
        "exit_code": standing.exit_code,
        "seen_s": round(standing.seen_s, 3),
    }
    data["files"] = list(files)
    return {
        name: value
        for name, value in data.items()
        if value is not None and value is not False and value != ""
    }


def from_data(data: object) -> Standing:
    """Read what ``to_data`` made, from anybody.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"a standing must be an object, got {type(data).__name__}")
    files = [_text(name) for name in _list(data.get("files"), _MAX_CALLS)]
    state = data.get("state", "running")
    if state not in STATES:
        raise ValueError(f"unknown state {_text(str(state))!r}")
    return Standing(
        rank=_integer(data.get("rank")),
        host=_text(data.get("host", "")),
        pid=_integer(data.get("pid", 0)),
        local_rank=_integer(data.get("local_rank", 0)),
        state=state,
        places=_places(data.get("places"), files),
        operation=_text(data.get("operation", "")),
        since_s=_real(data.get("since_s", 0.0)),
        busy=data.get("busy") is True,
        groups=tuple(_group(each) for each in _list(data.get("groups"), _MAX_GROUPS)),
        calls=tuple(_call(each, files) for each in _list(data.get("calls"), _MAX_CALLS)),
        step=_maybe_integer(data.get("step")),
        phases=tuple(_text(each) for each in _list(data.get("phases"), _MAX_PLACES)),
        failure=_text(data.get("failure", "")),
        victim=data.get("victim") is True,
        exit_code=_maybe_integer(data.get("exit_code")),
        seen_s=_real(data.get("seen_s", 0.0)),
    )


def to_json(standing: Standing) -> bytes:
    """At most ``MAX_STANDING_BYTES``; the oldest calls are dropped where it is more."""
    data = to_data(standing)
    text = json.dumps(data, separators=(",", ":")).encode()
    while len(text) > MAX_STANDING_BYTES and data.get("calls"):
        data["calls"] = data["calls"][len(data["calls"]) // 2 + 1 :]
        text = json.dumps(data, separators=(",", ":")).encode()
    return text


def from_json(text: bytes | str) -> Standing:
    """Read what ``to_json`` made.

    Raises:
        ValueError: it is something else, or too large.
    """
    if len(text) > MAX_STANDING_BYTES:
        raise ValueError(f"a standing has at most {MAX_STANDING_BYTES} bytes, got {len(text)}")
    try:
        return from_data(json.loads(text))
    except RecursionError:
        raise ValueError("a standing is not nested that deeply") from None


@lru_cache(maxsize=512)
def parse_ranks(text: str, limit: int = 1_000_000) -> tuple[int, ...]:
    """``"0-2, 8-24/8"`` as numbers; reads what ``format_ranks`` and ``pack_ranks`` make.

    Raises:
        ValueError: it is something else, or names more than ``limit`` ranks.
    """
    ranks: list[int] = []
    for part in text.split(",") if text else ():
        run, slash, step_text = part.strip().partition("/")
        first, dash, last = run.partition("-")
        start = _digits(first)
        stop = _digits(last) if dash else start
        step = _digits(step_text) if slash else 1
        if step < 1 or (stop - start) // step >= limit - len(ranks):
            raise ValueError(f"more than {limit} ranks")
        ranks.extend(range(start, stop + 1, step))
    return tuple(ranks)


def _digits(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError(f"no rank: {_text(text)!r}")
    return int(text)


def _list(value: object, limit: int) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"a list was expected, got {type(value).__name__}")
    return value[:limit]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text was expected, got {type(value).__name__}")
    return escape_text(value, _MAX_TEXT)


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_NUMBER:
        raise ValueError(f"a whole number was expected, got {type(value).__name__}")
    return value


def _maybe_integer(value: object) -> int | None:
    return None if value is None else _integer(value)


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise ValueError(f"a number was expected, got {type(value).__name__}")
    return float(value)


def _fields(value: object, count: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"a list of {count} was expected")
    return value


def _places(value: object, files: Sequence[str]) -> tuple[Place, ...]:
    places = []
    for each in _list(value, _MAX_PLACES):
        number, line, function = _fields(each, 3)
        if not 0 <= _integer(number) < len(files):
            raise ValueError("a place names a file that is not there")
        places.append(Place(files[number], _integer(line), _text(function)))
    return tuple(places)


def _group(value: object) -> GroupNumber:
    name, label, ranks, number = _fields(value, 4)
    if not isinstance(ranks, str) or len(ranks) > 100_000:
        raise ValueError("a text of ranks was expected")
    parse_ranks(ranks)
    return GroupNumber(_text(name), _text(label), ranks, _maybe_integer(number))


def _call(value: object, files: Sequence[str]) -> Call:
    group, number, operation, places, done, point_to_point, began_s, sizes = _fields(value, 8)
    return Call(
        _text(group),
        _integer(number),
        _text(operation),
        _places(places, files),
        done is True,
        point_to_point is True,
        _real(began_s),
        _text(sizes),
    )
