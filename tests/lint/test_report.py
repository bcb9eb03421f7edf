"""How findings are printed: the code frame, the two columns, and the formats for machines."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from spmdguard_lint.model import Edit, Finding, Fix, Location, Site, TrailStep
from spmdguard_lint.report.columns import columns
from spmdguard_lint.report.full import full
from spmdguard_lint.report.plain import as_dict, github
from spmdguard_lint.report.style import Style, num_cells, printable, wrapped
from spmdguard_lint.report.summary import Counts, summary
from spmdguard_lint.source.reading import decode_source

TRAIN = """\
import torch.distributed as dist


def step(net, batch):
    rank = dist.get_rank()
    loss = net(batch)
    if rank == 0 and loss.isnan():
        return None
    dist.all_reduce(loss)
    return loss
"""


def site(row: int, start: int, end: int, filename: str = "train.py", end_row: int | None = None) -> Site:
    return Site(filename, Location(row, start), Location(end_row or row, end))


def finding(**changes) -> Finding:
    early_exit = Finding(
        code="SPG903",
        name="early-exit",
        severity="error",
        certainty="definite",
        message="`return` on rank 0 skips `all_reduce`, which the others call",
        help="let all ranks return together",
        site=site(8, 9, 20),
        trail=(
            TrailStep(site(5, 12, 27), "`dist.get_rank()` differs from rank to rank"),
            TrailStep(site(7, 8, 35), "so ranks disagree on this condition"),
        ),
        diverging=("return",),
        others=("all_reduce (line 9)", "return"),
    )
    return replace(early_exit, **changes)


PLAIN = Style()


def draw(found: Finding, style: Style = PLAIN, **texts: str) -> str:
    files = {"train.py": TRAIN, **{name.replace("_", "."): text for name, text in texts.items()}}
    sources = {name: decode_source(text.encode(), name) for name, text in files.items()}
    return "\n".join(full(found, sources, style))


def test_full_report():
    """Message, frame with the numbered trail, two columns with the first difference marked, help, page."""
    assert (
        draw(finding())
        == """\
error[SPG903]: `return` on rank 0 skips `all_reduce`, which the others call
  ╭─▸ train.py:8:9  early-exit, definite
5 │     rank = dist.get_rank()
  │            ─────────────── ① `dist.get_rank()` differs from rank to rank
6 │     loss = net(batch)
7 │     if rank == 0 and loss.isnan():
  │        ─────────────────────────── ② so ranks disagree on this condition
8 │         return None
  │         ^^^^^^^^^^^
9 │     dist.all_reduce(loss)

    what the diverging rank does │ what the others do
    ─────────────────────────────┼────────────────────
  ≠ return                       │ all_reduce (line 9)
    —                            │ return

  help: let all ranks return together
  rule: https://github.com/spmdguard/spmdguard/blob/main/docs/rules/SPG903.md"""
    )


def test_full_report_without_box_characters():
    """Where the output is not Unicode, plain characters take the places of the box characters."""
    text = draw(finding(), Style(unicode=False))
    assert text.isascii()
    assert "5 |     rank = dist.get_rank()\n  |            --------------- (1) `dist" in text
    assert "  ! return                       | all_reduce (line 9)\n    -" in text


def test_trail_step_on_the_finding_shares_its_mark():
    """A step of the trail on the finding's own span labels the finding's underline."""
    text = draw(finding(trail=(TrailStep(site(8, 9, 20), "these ranks leave here"),)))
    assert "  │         ^^^^^^^^^^^ ① these ranks leave here\n" in text
    assert "─ ①" not in text


def test_a_source_that_is_the_whole_condition_is_shown_once():
    """A source and the condition that is nothing else share one step; the steps behind it count on from there."""
    source = TrailStep(site(7, 8, 12), "`rank` differs between ranks")
    called = TrailStep(site(9, 5, 26), "`dist.all_reduce(loss)` is the collective")
    text = draw(finding(trail=(source, TrailStep(site(7, 5, 12), "`rank` decides"), called)))
    assert "   │        ──── ① `rank` differs between ranks, and decides\n 8 │" in text
    assert "② `dist.all_reduce(loss)` is the collective" in text
    for other in (
        TrailStep(site(7, 5, 17), "`rank == 0` decides"),  # another expression
        TrailStep(site(8, 5, 12), "`rank` decides"),  # another place
        TrailStep(site(7, 5, 12, "util.py"), "`rank` decides"),
    ):
        text = draw(finding(trail=(source, other, called)))
        assert "① `rank` differs between ranks\n" in text
        assert f"② {other.message}" in text
        assert "③ `dist" in text


def test_trail_in_another_file():
    """Steps in other files follow in frames of their own; a file without text shows the step alone."""
    trail = (
        TrailStep(site(1, 1, 8, "util.py"), "comes from here"),
        TrailStep(site(4, 1, 8, "gone.py"), "and from there"),
    )
    text = draw(finding(trail=trail), util_py="RANK = 3\n")
    assert "  ├─▸ util.py:1:1\n1 │ RANK = 3\n  │ ─────── ① comes from here\n  │\n" in text
    assert "  ├─▸ gone.py:4:1\n" in text
    assert "② and from there" in text


def test_columns_of_wide_characters_and_tabs():
    """Underlines stand under their text after tabs, wide and combining characters."""
    text = 'if 1:\n\tx = "漢字e\u0301"; probe()\n'
    found = finding(site=site(2, 14, 21, "a.py"), trail=(), diverging=(), others=())
    lines = draw(found, a_py=text).splitlines()
    line = next(line for line in lines if "probe()" in line)
    caret = next(line for line in lines if "^" in line)
    assert num_cells(line[: line.index("probe")]) == num_cells(caret[: caret.index("^")])
    assert caret.count("^") == len("probe()")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 130])
def test_nothing_is_wider_than_the_terminal(width):
    """Long messages, labels, code lines and table cells are wrapped or cut to the width."""
    long_line = "x = " + "a + " * 60 + "probe()"
    found = finding(
        message="word " * 60,
        help="help " * 60,
        site=site(1, len(long_line) - 6, len(long_line) + 1, "a.py"),
        trail=(TrailStep(site(1, 5, 6, "a.py"), "label " * 30),),
        diverging=("all_reduce " * 12, "x" * 200),
        others=("barrier " * 12, "y"),
    )
    lines = draw(found, Style(width=width), a_py=long_line).splitlines()
    too_wide = [line for line in lines if num_cells(line) > width and not line.startswith("  rule: ")]
    assert too_wide == []
    assert any("probe()" in line for line in lines)


def test_place_beyond_the_text():
    """A place that the text does not have is named, and nothing crashes."""
    assert "train.py:99:1" in draw(finding(site=site(99, 1, 5)))
    assert "empty.py:1:1" in draw(finding(site=site(1, 1, 1, "empty.py"), trail=()), empty_py="")
    assert "train.py:8:999" in draw(finding(site=site(8, 999, 1005)))


def test_span_over_several_rows_is_underlined_on_its_first():
    """A span over several rows is underlined to the end of its first row."""
    text = draw(finding(site=site(7, 5, 20, end_row=8), trail=()))
    assert "7 │     if rank == 0 and loss.isnan():\n  │     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n" in text


def test_columns_mark_the_first_difference_only():
    """Entries that meet are alike up to the first difference, which is marked; a shorter side is filled."""
    lines = list(columns(["barrier", "return"], ["barrier", "all_reduce", "return"], 0, Style()))
    assert [line[0] for line in lines] == [" ", " ", " ", "≠", " "]
    assert lines[2].split("│")[0].strip() == lines[2].split("│")[1].strip() == "barrier"
    assert lines[4].split("│")[0].strip() == "—"
    assert list(columns([], [], 2, Style())) == []


def test_json_has_the_documented_fields():
    """The JSON format is the documented one, field by field."""
    edit = Edit("x", site(8, 9, 20))
    expected = {
        "code": "SPG903",
        "name": "early-exit",
        "severity": "error",
        "certainty": "definite",
        "message": "`return` on rank 0 skips `all_reduce`, which the others call",
        "help": "let all ranks return together",
        "filename": "train.py",
        "location": {"row": 8, "column": 9},
        "end_location": {"row": 8, "column": 20},
        "trail": [
            {
                "filename": "train.py",
                "location": {"row": 5, "column": 12},
                "message": "`dist.get_rank()` differs from rank to rank",
            },
            {
                "filename": "train.py",
                "location": {"row": 7, "column": 8},
                "message": "so ranks disagree on this condition",
            },
        ],
        "traces": {"diverging": ["return"], "others": ["all_reduce (line 9)", "return"]},
        "fix": {
            "applicability": "safe",
            "message": "move it",
            "edits": [
                {
                    "content": "x",
                    "location": {"row": 8, "column": 9},
                    "end_location": {"row": 8, "column": 20},
                }
            ],
        },
        "url": "https://github.com/spmdguard/spmdguard/blob/main/docs/rules/SPG903.md",
    }
    assert as_dict(finding(fix=Fix("safe", "move it", (edit,)))) == expected
    assert as_dict(finding())["fix"] is None


def test_json_is_one_array(tree, in_process, probes):
    """The JSON format prints one array and nothing else, an empty one when nothing was found."""
    tree({"a.py": "probe190()\nprobe191()\n", "b.py": ""})
    outcome = in_process("lint", "a.py", "--output-format", "json", analysis=probes)
    assert [item["code"] for item in json.loads(outcome.out)] == ["SPG190", "SPG191"]
    assert in_process("lint", "b.py", "--output-format", "json", analysis=probes).out == "[]\n"


def test_github_commands_are_escaped():
    """Workflow commands carry place and message, with the characters that end a field escaped."""
    found = finding(message="50% of\nranks", site=site(8, 9, 20, "a,b:c.py"), severity="warning")
    assert github(found) == (
        "::warning title=spmdguard (SPG903),file=a%2Cb%3Ac.py,line=8,col=9,endLine=8,endColumn=20"
        "::a,b:c.py:8:9: SPG903 50%25 of%0Aranks"
    )
    assert github(finding(severity="info")).startswith("::notice ")


def test_summary_counts():
    """The last line counts findings by severity, and files, in words."""
    plain = Style()
    assert summary([], Counts(1), plain) == "No findings: 1 file checked."
    found = [finding(), finding(severity="warning"), finding(severity="warning", site=site(1, 1, 2, "b.py"))]
    expected = "Found 1 error, 2 warnings in 2 files; 1,200 files checked, 3 suppressed."
    assert summary(found, Counts(1200, 3), plain) == expected


def test_text_from_files_cannot_control_the_terminal():
    """Control characters of source text, names and messages are replaced."""
    found = finding(
        message="a\x1b[31mb", site=site(1, 1, 2, "a.py"), trail=(), diverging=("\x07",), others=("x",)
    )
    text = draw(found, a_py="x = '\x1b]0;t\x07'\n")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    assert printable("\ta\x9b") == "    a\N{REPLACEMENT CHARACTER}"


def test_wrapping_breaks_long_words():
    """Text is wrapped at spaces; a word longer than the line is broken; no text is lost."""
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("", 10) == [""]
    lines = wrapped("ab " + "x" * 25 + " 漢字漢字漢字", 10)
    assert max(map(num_cells, lines)) <= 10
    assert "".join(lines).replace(" ", "") == "ab" + "x" * 25 + "漢字漢字漢字"


COLOUR = "\x1b["


@pytest.mark.parametrize(
    ("env", "options", "expected"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"FORCE_COLOR": "1"}, ["--no-color"], False),
    ],
)
def test_colour_follows_the_conventions(env, options, expected, tree, process):
    """No colour into a pipe; NO_COLOR and `--no-color` are stronger than FORCE_COLOR."""
    root = tree({"a.py": "def f(:\n"})
    clean = {"NO_COLOR": "", "FORCE_COLOR": ""}
    assert (COLOUR in process("lint", "a.py", *options, cwd=root, env={**clean, **env}).out) is expected


def on_terminal(root, *options: str, **env: str) -> str:
    """What `spmdguard lint .` writes to a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "spmdguard", "lint", ".", *options]
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", "FORCE_COLOR": "", **env}
    running = subprocess.Popen(command, cwd=root, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    written = b""
    try:
        while chunk := os.read(master, 65536):
            written += chunk
    except OSError:  # the terminal is closed once its last user has ended
        pass
    running.wait(timeout=60)
    os.close(master)
    return written.decode()


def test_colour_on_a_terminal(tree):
    """On a terminal the report is in colour, unless NO_COLOR or a dumb terminal says otherwise."""
    root = tree({"a.py": "def f(:\n"})
    assert COLOUR in on_terminal(root)
    assert COLOUR not in on_terminal(root, NO_COLOR="1")
    assert COLOUR not in on_terminal(root, TERM="dumb")


def test_progress_bar(monkeypatch, capsys):
    """The bar is drawn once a run has lasted a while, counts, and imports nothing before that."""
    from spmdguard_lint.report import progress

    with progress.ProgressBar() as bar:
        bar.phase("reading", 3)
        bar.advance()
        assert bar._bar is None
    monkeypatch.setattr(progress, "PATIENCE_S", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    with progress.ProgressBar() as bar:
        bar.phase("reading", 3)
        bar.advance(2)
        assert bar._bar is not None
        bar.phase("analysing", 7)
        bar.advance(4)
        (task,) = bar._bar.tasks
        assert (task.description, task.completed, task.total) == ("analysing", 4, 7)
    assert "analysing" in capsys.readouterr().err
