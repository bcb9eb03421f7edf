"""The stall report as one HTML page: the text, and one lane a rank. No script, nothing from elsewhere."""

from __future__ import annotations

from html import escape

from spmdguard.format import name_ranks
from spmdguard.watch.report import Report, format_places, render_text, seen_at
from spmdguard.watch.spans import Span, spans_of
from spmdguard.watch.standing import Standing

MAX_LANES = 1_000
MAX_SPANS = 40_000
_COLOURS = ("#4c78a8", "#54a24b", "#b79a20", "#9d67ae", "#3a9a9a", "#8c6d5a", "#d67195", "#72757a")
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --paper: #ffffff; --soft: #eef0f4; --line: #cdd2db; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ec; --paper: #16181d; --soft: #23262e; --line: #3a3f4b; } }
body { font: 14px/1.45 system-ui, sans-serif; margin: 24px; color: var(--ink); background: var(--paper); }
h1 { font-size: 19px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 22px 0 8px; }
pre { background: var(--soft); padding: 12px; border-radius: 6px; overflow-x: auto; font-size: 12.5px; }
.lanes { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
.lane { display: grid; grid-template-columns: 92px 1fr minmax(260px, 34%); border-top: 1px solid var(--line); }
.lane:first-child { border-top: 0; } .lane.cause { background: #e4575620; }
.lane > * { padding: 5px 8px; } .lane .who { font-weight: 600; }
.bar { position: relative; height: 22px; margin: 3px 0; background: var(--soft); padding: 0; overflow: hidden; }
.bar i { position: absolute; top: 0; bottom: 0; min-width: 2px; font: 11px/22px system-ui; color: #fff;
  overflow: hidden; white-space: nowrap; text-indent: 4px; }
.bar i.now { background: repeating-linear-gradient(135deg, #c77f1e, #c77f1e 8px, #b06f17 8px, #b06f17 16px); }
.cause .bar i.now { background: #d6423f; } .who small { font-weight: 400; opacity: .75; }
.bar i.left { background: #72757a; }
.at { font-size: 12px; overflow-wrap: anywhere; } .legend span { margin-right: 14px; white-space: nowrap; }
.legend b { display: inline-block; width: 11px; height: 11px; margin-right: 5px; border-radius: 2px; }
.axis { display: flex; justify-content: space-between; font-size: 12px; padding: 2px 8px; }
"""


def render_html(report: Report) -> str:
    """A page that needs nothing besides itself; every text is escaped."""
    diagnosis = report.diagnosis
    standings = _shown(report)
    spans = {each.rank: spans_of(each, report.now_s, _limit(len(standings))) for each in standings}
    start_s, end_s = _window(report, [span for found in spans.values() for span in found])
    colours = _colours(spans.values())
    lanes = "\n".join(
        _lane(each, spans[each.rank], start_s, end_s, colours, each.rank in diagnosis.suspects)
        for each in standings
    )
    hidden = diagnosis.world_size - len(standings)
    more = f"<p>{hidden} more ranks are not drawn.</p>" if hidden > 0 else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stall: {escape(diagnosis.title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{_STYLE}</style></head>
<body>
<h1>{escape(diagnosis.title)}</h1>
<p>{escape(report.reason)}; {escape(report.when)}</p>
<h2>Lanes: the last collectives of each rank, and where it stands</h2>
<p class="legend">{_legend(colours)}</p>
<div class="axis"><span>{start_s - end_s:.1f} s</span><span>now</span></div>
<div class="lanes">
{lanes}
</div>{more}
<h2>Report</h2>
<pre>{escape(render_text(report))}</pre>
</body></html>"""


def _shown(report: Report) -> list[Standing]:
    """The suspects, then the others, as far as there is room."""
    suspects = set(report.diagnosis.suspects)
    heard = {each.rank: each for each in report.standings}
    for rank in suspects - set(heard):
        heard[rank] = Standing(rank=rank, state="missing")
    ordered = sorted(heard.values(), key=lambda each: (each.rank not in suspects, each.rank))
    return sorted(ordered[:MAX_LANES], key=lambda each: each.rank)


def _limit(num_lanes: int) -> int:
    return max(4, min(64, MAX_SPANS // max(1, num_lanes)))


def _window(report: Report, spans: list[Span]) -> tuple[float, float]:
    """The times drawn: the stall, and as much before it."""
    end_s = report.now_s
    stalled_s = max(1.0, report.diagnosis.longest_s)
    earliest_s = min((span.start_s for span in spans), default=end_s - stalled_s)
    return max(min(earliest_s, end_s - stalled_s), end_s - 2.2 * stalled_s), end_s


def _colours(lanes: object) -> dict[str, str]:
    names = sorted({span.label for spans in lanes for span in spans if not span.unfinished})  # type: ignore[attr-defined]
    return {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(names)}


def _legend(colours: dict[str, str]) -> str:
    shown = [
        f'<span><b style="background:{colour}"></b>{escape(name)}</span>' for name, colour in colours.items()
    ]
    shown += ['<span><b style="background:#c77f1e"></b>waits</span>']
    return "".join([*shown, '<span><b style="background:#d6423f"></b>the cause</span>'])


def _lane(
    standing: Standing,
    spans: list[Span],
    start_s: float,
    end_s: float,
    colours: dict[str, str],
    cause: bool,
) -> str:
    width_s = max(1e-6, end_s - start_s)
    drawn = []
    for span in spans:
        if span.end_s < start_s:
            continue
        left = 100 * max(0.0, span.start_s - start_s) / width_s
        width = 100 * (span.end_s - max(span.start_s, start_s)) / width_s
        style = f"left:{left:.2f}%;width:{width:.2f}%"
        kind = ""
        if span.unfinished:
            kind = ' class="left"' if standing.state in ("ended", "died", "missing") else ' class="now"'
        else:
            style += f";background:{colours[span.label]}"
        title = escape(f"{span.label}, {span.detail} at {format_places(span.places)}", quote=True)
        text = escape(span.label) if width > 4 else ""
        drawn.append(f'<i{kind} style="{style}" title="{title}">{text}</i>')
    state = f"waits in {standing.operation}" if standing.state == "waiting" else standing.state
    state = "not in communication" if standing.state == "running" else state
    failure = f": {standing.failure}" if standing.failure else ""
    where = f"{state}{failure} {seen_at(standing)} {format_places(standing.places, 2)}"
    host = f"<br><small>{escape(standing.host)}</small>" if standing.host else ""
    return (
        f'<div class="lane{" cause" if cause else ""}">'
        f'<div class="who">{escape(name_ranks([standing.rank]))}{host}</div>'
        f'<div class="bar">{"".join(drawn)}</div><div class="at">{escape(where)}</div></div>'
    )
