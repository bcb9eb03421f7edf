"""A verdict as text of about ten lines, or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spmdguard.format import short_path
from spmdguard.triage.tags import Moment
from spmdguard.triage.tracebacks import Frame
from spmdguard.triage.verdict import WATCHED, Stand, Verdict
from spmdguard.triage.who import Who, name_all

MAX_STANDS = 4
WIDTH = 200


def to_text(verdict: Verdict, checks: Mapping[str, str], lint: Sequence[str] = (), num_logs: int = 1) -> str:
    """Ten lines or so for a person; nothing from a log is shown uncut or with control characters."""
    if verdict.kind == "nothing":
        return f"no failure found in {num_logs} log{'s' if num_logs != 1 else ''}\n"
    lines = [_cut(_title(verdict))]
    if verdict.place:
        lines.append(_row("at", _place_text(verdict)))
    if verdict.means:
        lines.append(_row("means", verdict.means))
    if verdict.chain:
        lines.append(_row("with", "; ".join(verdict.chain)))
    lines += _stand_rows("stood", verdict.stands)
    lines += _stand_rows("later", verdict.also)
    lines += _stand_rows("victims", verdict.victims)
    lines += [_row("lint", text) for text in lint[:2]]
    texts = [_check(checks[name], verdict) for name in verdict.checks if name in checks]
    lines += [
        _row("next" if number == 1 else "", f"{number}. {text}", width=400)
        for number, text in enumerate(texts, 1)
    ]
    return "\n".join(lines) + "\n"


def to_json(verdict: Verdict, checks: Mapping[str, str], lint: Sequence[str] = ()) -> dict[str, Any]:
    """The verdict for programs; every field is always there."""
    return {
        "kind": verdict.kind,
        "ranks": _ranks(verdict.who),
        "processes": [str(who) for who in verdict.who if who.rank is None],
        "error": verdict.error,
        "means": verdict.means,
        "place": _frame(verdict.place),
        "callers": [_frame(frame) for frame in verdict.callers],
        "log": {"file": verdict.log[0], "line": verdict.log[1]} if verdict.log else None,
        "when": format_moment(verdict.when) or None,
        "chain": list(verdict.chain),
        "stands": [_stand(stand) for stand in verdict.stands],
        "later": [_stand(stand) for stand in verdict.also],
        "victims": [_stand(stand) for stand in verdict.victims],
        "lint": list(lint),
        "checks": [{"name": name, "text": checks[name]} for name in verdict.checks if name in checks],
    }


def _check(text: str, verdict: Verdict) -> str:
    place = _frame_text(verdict.place) if verdict.place else "the line that failed"
    return text.replace("{place}", place)


def format_moment(when: Moment | None) -> str:
    """``"2026-03-05 07:01:51"``, without the year where the log has none."""
    if when is None:
        return ""
    year, month, day, hour, minute, second = when
    date = f"{year:04d}-{month:02d}-{day:02d}" if year else f"{month:02d}-{day:02d}"
    return f"{date} {hour:02d}:{minute:02d}:{int(second):02d}"


def _title(verdict: Verdict) -> str:
    names = name_all(verdict.who)
    when = f" ({format_moment(verdict.when)})" if verdict.when else ""
    if verdict.kind == "failed":
        alike = " alike" if len(verdict.who) > 1 else ""
        return f"{names} failed first{alike}{when}: {verdict.error}"
    if verdict.kind in ("killed", "silent"):
        return f"{names} ended first{when}: {verdict.error}"
    if verdict.kind == "suspected":
        return f"{names} may have failed first{when}: {verdict.error}"
    if verdict.kind == "left":
        return f"no rank reports an error of its own{when}; " + (
            f"{names} left while others waited" if names else "a rank left while others waited"
        )
    if verdict.means == WATCHED:
        return f"the ranks parted{when}: {verdict.error}"
    return f"no rank reports an error of its own{when}: the ranks parted" + (
        f"; look at {names} first" if names else ""
    )


def _place_text(verdict: Verdict) -> str:
    frame = verdict.place
    assert frame is not None
    text = _frame_text(frame)
    outer = [caller for caller in verdict.callers if caller != frame]
    if outer:
        text += f", called from {_frame_text(outer[-1])}"
    return text + (f"   [{_short(verdict.log[0])}:{verdict.log[1]}]" if verdict.log else "")


def _frame_text(frame: Frame) -> str:
    return f"{_short(frame.file)}:{frame.line}" + (f" in {frame.function}" if frame.function else "")


def _short(path: str) -> str:
    """The path relative to the working directory, or the last parts of a long one."""
    short = short_path(path).replace("\\", "/")
    return short if len(short) <= 48 else ".../" + "/".join(short.rsplit("/", 2)[-2:])


def _stand_rows(label: str, stands: Sequence[Stand]) -> list[str]:
    rows = []
    for index, stand in enumerate(stands[:MAX_STANDS]):
        place = f" at {_frame_text(stand.place)}" if stand.place else ""
        rows.append(_row(label if index == 0 else "", f"{name_all(stand.who)}{place}: {stand.text}"))
    if len(stands) > MAX_STANDS:
        rows.append(_row("", f"and {len(stands) - MAX_STANDS} more; see --json"))
    return rows


def _row(label: str, text: str, width: int = WIDTH) -> str:
    return f"  {label:<8} {_cut(text, width)}"


def _cut(text: str, width: int = WIDTH) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 3] + "..."


def _ranks(people: Sequence[Who]) -> list[int]:
    return sorted(who.rank for who in people if who.rank is not None)


def _frame(frame: Frame | None) -> dict[str, Any] | None:
    return {"file": frame.file, "line": frame.line, "function": frame.function} if frame else None


def _stand(stand: Stand) -> dict[str, Any]:
    return {
        "ranks": _ranks(stand.who),
        "processes": [str(who) for who in stand.who if who.rank is None],
        "text": stand.text,
        "place": _frame(stand.place),
    }
