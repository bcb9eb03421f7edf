"""The stall report as JSON: the cause, where ranks part, every rank."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spmdguard.watch.hints import Hint
from spmdguard.watch.report import Report, shown_hints
from spmdguard.watch.standing import Place, to_data


def render_json(report: Report) -> str:
    """One JSON object; ``version`` changes when a field changes its meaning."""
    diagnosis = report.diagnosis
    parting = diagnosis.parting
    data: dict[str, Any] = {
        "version": 1,
        "when": report.when,
        "reason": report.reason,
        "limit_s": report.limit_s,
        "kind": diagnosis.kind,
        "title": diagnosis.title,
        "suspects": list(diagnosis.suspects),
        "waiting": list(diagnosis.waiting),
        "waited_s": round(report.waited_s, 3),
        "world_size": diagnosis.world_size,
        "parting": None
        if parting is None
        else {
            "group": parting.group,
            "number": parting.number,
            "before": None
            if parting.before is None
            else {"operation": parting.before.operation, "places": _places(parting.before.places)},
            "arms": [
                {"ranks": list(arm.ranks), "operation": arm.operation, "places": _places(arm.places)}
                for arm in parting.arms
            ],
        },
        "hints": None if report.hints is None else [_hint(hint) for hint in shown_hints(report)],
        "ranks": [to_data(standing) for standing in report.standings],
    }
    return json.dumps(data, indent=1)


def _places(places: Sequence[Place]) -> list[dict[str, Any]]:
    return [{"file": each.file, "line": each.line, "function": each.function} for each in places]


def _hint(hint: Hint) -> dict[str, Any]:
    return {
        "code": hint.code,
        "name": hint.name,
        "certainty": hint.certainty,
        "file": hint.file,
        "line": hint.line,
        "message": hint.message,
        "trail": [{"line": line, "message": message} for line, message in hint.steps],
        "help": hint.help,
    }
