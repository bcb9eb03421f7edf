"""A rank's last calls as spans of time, for pictures.

torch records when a call began, and on gloo not when it ended: a finished call is drawn up to the next one,
an unfinished one up to now.
"""

from __future__ import annotations

from dataclasses import dataclass

from spmdguard.watch.standing import Place, Standing

MAX_FINISHED_S = 0.05


@dataclass(frozen=True)
class Span:
    """A piece of a rank's lane."""

    start_s: float
    end_s: float
    label: str
    detail: str
    places: tuple[Place, ...]
    unfinished: bool


def spans_of(standing: Standing, now_s: float, limit: int = 64) -> list[Span]:
    """The last calls of a rank, oldest first, and where it stands now."""
    calls = sorted(standing.calls, key=lambda call: call.began_s)[-limit:]
    spans = []
    for index, call in enumerate(calls):
        after_s = calls[index + 1].began_s if index + 1 < len(calls) else now_s
        end_s = min(after_s, call.began_s + MAX_FINISHED_S) if call.done else now_s
        detail = f"number {call.number} of group {call.group}"
        spans.append(
            Span(call.began_s, max(end_s, call.began_s), call.operation, detail, call.places, not call.done)
        )
    if not any(span.unfinished for span in spans):
        start_s = now_s - max(0.0, standing.since_s)
        states = {"waiting": standing.operation, "running": "not in communication"}
        text = states.get(standing.state, standing.state)
        spans.append(Span(start_s, now_s, text, standing.failure, standing.places, True))
    return spans
