"""The stall report as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing: one track a rank."""

from __future__ import annotations

import json
from typing import Any

from spmdguard.watch.report import Report, format_places
from spmdguard.watch.spans import spans_of

_MICROSECONDS = 1e6


def render_trace(report: Report) -> str:
    """The trace event format, in JSON; times in microseconds since the epoch."""
    events: list[dict[str, Any]] = []
    for standing in report.standings:
        rank = standing.rank
        name = f"rank {rank} ({standing.host or 'unknown host'})"
        events.append({"ph": "M", "pid": rank, "tid": 0, "name": "process_name", "args": {"name": name}})
        events.append({"ph": "M", "pid": rank, "name": "process_sort_index", "args": {"sort_index": rank}})
        for span in spans_of(standing, report.now_s):
            events.append(
                {
                    "ph": "X",
                    "pid": rank,
                    "tid": 0,
                    "name": span.label,
                    "ts": span.start_s * _MICROSECONDS,
                    "dur": max(1.0, (span.end_s - span.start_s) * _MICROSECONDS),
                    "args": {"at": format_places(span.places), "what": span.detail},
                    "cname": "terrible" if span.unfinished else "good",
                }
            )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
