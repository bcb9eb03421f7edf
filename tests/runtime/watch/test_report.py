"""The forms of a stall report: text of bounded length, JSON, a page, a trace; none can be made to do harm."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from spmdguard.watch.diagnosis import diagnose
from spmdguard.watch.hints import Hint
from spmdguard.watch.html_report import render_html
from spmdguard.watch.json_report import render_json
from spmdguard.watch.report import MAX_LINES, Report, format_places, render_text, summarise
from spmdguard.watch.standing import Standing, from_data, to_data
from spmdguard.watch.trace_report import render_trace

from .making import call, elsewhere, place, standings, waiting

HINT = Hint(
    file="train.py",
    line=33,
    code="SPG101",
    name="collective-in-rank-branch",
    certainty="definite",
    message="`dist.barrier()` runs only where `rank == 0`",
    steps=((30, "`dist.get_rank()` differs between ranks"), (32, "`rank == 0` decides")),
    help="call it on every rank",
)


def report_of(found: list[Standing], world_size: int, hints: tuple[Hint, ...] | None = (HINT,)) -> Report:
    return Report(diagnose(found, world_size), tuple(found), hints, 5.0, "a wait", "2024-01-01", 100.0, 5.2)


def scattered(num_ranks: int) -> Report:
    """Every rank at a line of its own."""
    shared = [call(1, "all_reduce", 10)]
    ranks = [waiting(rank, num_ranks, [*shared, call(2, "barrier", 20)]) for rank in range(num_ranks // 2)]
    ranks += [elsewhere(rank, num_ranks, shared, rank) for rank in range(num_ranks // 2, num_ranks)]
    return report_of(ranks, num_ranks, (HINT,) * 9)


def test_a_report_of_a_thousand_ranks_is_short() -> None:
    """1,000 ranks at 501 places have at most 40 lines, with the cause, the finding and the advice."""
    lines = render_text(scattered(1_000)).split("\n")
    assert len(lines) <= MAX_LINES
    assert lines[0] == "spmdguard: STALL: ranks 500-999 did not come: ranks 0-499 wait in barrier"
    assert any("SPG101" in line for line in lines)
    assert lines[-1].startswith("  do:")


def test_the_report_names_rank_line_and_wait() -> None:
    """Two ranks, one elsewhere: all that a reader needs stands in the text."""
    shared = [call(1, "all_reduce", 10)]
    late = elsewhere(1, 2, shared, 33, phases=("save",), step=7, busy=True)
    text = render_text(report_of([waiting(0, 2, [*shared, call(2, "barrier", 20)]), late], 2))
    for piece in (
        "rank 1 did not come: rank 0 waits in barrier",
        "parted: after all_reduce, number 1",
        "rank 1: began no further collective; at train.py:33 in main",
        "computes, not in communication, since 5.0 s; 1 collective behind; step 7; phase save",
        "rank 0: waits in barrier since 5.0 s",
        "train.py:33 SPG101 collective-in-rank-branch (definite)",
        "line 32: `rank == 0` decides",
    ):
        assert piece in text, text


def test_a_rank_that_ended_was_last_seen_somewhere() -> None:
    """Where a rank ended no line is called its place: it was last seen there, and began no further collective."""
    shared = [call(1, "all_reduce", 10)]
    gone = elsewhere(1, 2, shared, 10, state="ended", exit_code=0)
    report = report_of([waiting(0, 2, [*shared, call(2, "barrier", 20)]), gone], 2)
    lines = [line.strip() for line in render_text(report).split("\n")]
    assert "rank 1: began no further collective" in lines
    assert "last seen at train.py:10 in main" in lines
    assert summarise(report.diagnosis).endswith("waits in barrier (last seen at train.py:10 in main)")
    assert "ended last seen at train.py:10 in main" in render_html(report)


def test_the_folder_of_a_stack_stands_once() -> None:
    """Of frames that follow one another in one file, the first alone shows the folder."""
    deep = "/home/me/project/src/train.py"
    stack = [place(3, "step", deep), place(9, "fit", deep), place(4, "main", "run.py"), place(1, "go", deep)]
    assert format_places(stack) == (
        f"{deep}:3 in step < train.py:9 in fit < run.py:4 in main < {deep}:1 in go"
    )


def test_each_help_stands_under_its_finding() -> None:
    """Of two findings, each is followed by its own help."""
    other = replace(HINT, line=40, code="SPG203", help="let the error reach all")
    text = render_text(report_of([waiting(0, 2, [call(1, "barrier", 20)])], 2, (HINT, other)))
    found = [line.split()[2] for line in text.split("\n") if "lint:" in line or "help:" in line]
    assert found == ["SPG101", "it", "SPG203", "the"]


@settings(max_examples=40, deadline=None)
@given(st.lists(standings, max_size=10), st.integers(0, 12))
def test_no_text_steers_a_terminal(found: list[Standing], world_size: int) -> None:
    """Whatever ranks say, the text has few, printable lines: standings are escaped when they are read."""
    read = [from_data(to_data(each)) for each in found]
    lines = render_text(report_of(read, world_size)).split("\n")
    assert len(lines) <= MAX_LINES
    assert [line for line in lines if not line.isprintable()] == []


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


ALLOWED_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "span", "b", "br", "small", "div"),
    *("i", "pre"),
}


@settings(max_examples=40, deadline=None)
@given(st.lists(standings, max_size=8), st.integers(0, 10))
def test_no_text_becomes_markup(found: list[Standing], world_size: int) -> None:
    """Whatever ranks say, the page holds only our own elements and attributes, and refers to nothing."""
    page = render_html(report_of(found, world_size))
    tags = _Tags()
    tags.feed(page)
    assert tags.names <= ALLOWED_TAGS
    assert tags.attributes <= {"lang", "charset", "name", "content", "class", "style", "title"}
    assert re.search(
        r"(?:src|href)\s*=|@import|url\(", re.sub(r"<pre>.*</pre>", "", page, flags=re.DOTALL)
    ) is None or any("=" in each.failure + each.operation for each in found)


def test_markup_in_a_message_is_shown_as_text() -> None:
    """An exception's text with a script element is escaped."""
    bad = elsewhere(0, 1, [], 3, state="raised", failure="<script>alert(1)</script>")
    page = render_html(report_of([bad], 1))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_page_has_a_lane_for_each_rank() -> None:
    """Every rank has one lane, and the suspects' are marked."""
    page = render_html(scattered(40))
    assert page.count('<div class="lane') == 41  # with the box around them
    assert page.count('<div class="lane cause"') == 20


def test_the_page_of_many_ranks_is_bounded() -> None:
    """2,000 ranks make a page of at most 1,000 lanes that says how many are left out."""
    ranks = [waiting(rank, 2_000, [call(n, "all_reduce", 10) for n in range(1, 9)]) for rank in range(2_000)]
    page = render_html(report_of(ranks, 2_000))
    assert page.count('<div class="lane cause"') == 1_000
    assert "1000 more ranks are not drawn" in page
    assert len(page) < 6_000_000


@settings(max_examples=40, deadline=None)
@given(st.lists(standings, max_size=8), st.integers(0, 10))
def test_json_and_trace_can_be_read(found: list[Standing], world_size: int) -> None:
    """JSON and trace are JSON, whatever ranks say; the trace has only non-negative durations."""
    report = report_of(found, world_size, None)
    data = json.loads(render_json(report))
    assert (data["suspects"], data["hints"]) == (list(report.diagnosis.suspects), None)
    events = json.loads(render_trace(report))["traceEvents"]
    assert [event for event in events if event["ph"] == "X" and event["dur"] < 0] == []
    assert {event["pid"] for event in events} == {each.rank for each in found}


def test_the_trace_names_ranks_and_places() -> None:
    """Each rank is a track of its own; a call's place is among its arguments."""
    events = json.loads(render_trace(report_of([waiting(0, 1, [call(1, "barrier", 20)])], 1)))["traceEvents"]
    assert events[0]["args"] == {"name": "rank 0 (a)"}
    assert (events[2]["name"], events[2]["args"]["at"]) == ("barrier", "train.py:20 in main")
