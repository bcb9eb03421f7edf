"""The command: exit codes, JSON, standard input, bad input, the user's own patterns, the linter's word."""

from __future__ import annotations

import io
import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmdguard.triage.command import triage_command
from spmdguard.triage.events import Collector
from spmdguard.triage.flight import NotPlainData, plain_data
from spmdguard.triage.lines import lines_of
from spmdguard.triage.patterns import PatternError, own_patterns, parse
from spmdguard.triage.report import to_text
from spmdguard.triage.verdict import judge

FAILED = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "{source}", line 3, in <module>
[rank1]:     open("/nowhere/x")
[rank1]: FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/x'
[rank0]: Traceback (most recent call last):
[rank0]:   File "{source}", line 5, in <module>
[rank0]:     dist.barrier()
[rank0]: RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:4242
"""
SOURCE = """\
import torch.distributed as dist
if dist.get_rank() == 1:
    open("/nowhere/x")
    dist.all_reduce(1)
dist.barrier()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of two ranks whose source lies beside it."""
    (tmp_path / "job.py").write_text(SOURCE)
    path = tmp_path / "job.log"
    path.write_text(FAILED.format(source=tmp_path / "job.py"))
    return path


def test_a_failed_job_is_told_in_ten_lines(log: Path, capsys: pytest.CaptureFixture[str]):
    """Rank and error first, then place, victims, what to check; exit code 1."""
    assert triage_command([str(log), "--no-lint"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("rank 1 failed first: FileNotFoundError: [Errno 2] No such file or directory")
    assert "job.py:3 in <module>" in text
    assert "rank 0: lost its partner" in text
    assert len(text.splitlines()) <= 10


def test_json_holds_the_verdict(log: Path, capsys: pytest.CaptureFixture[str]):
    """Every field is there, with ranks as numbers."""
    triage_command([str(log), "--json", "--no-lint"])
    data = json.loads(capsys.readouterr().out)
    assert (data["kind"], data["ranks"], data["place"]["line"]) == ("failed", [1], 3)
    assert data["victims"] == [{"ranks": [0], "processes": [], "text": "lost its partner", "place": None}]
    assert {"file": str(log), "line": 4} == data["log"]


def test_the_linter_has_its_word_where_the_source_is_at_hand(log: Path, capsys: pytest.CaptureFixture[str]):
    """A finding in the named file is shown, found also below another folder than the log names."""
    moved = log.parent / "elsewhere"
    moved.mkdir()
    (log.parent / "job.py").rename(moved / "job.py")
    triage_command([str(log), "--source", str(moved), "--json"])
    assert any(
        "SPG101" in text and "job.py:4" in text for text in json.loads(capsys.readouterr().out)["lint"]
    )


def test_a_clean_log_exits_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Nothing failed: said so."""
    (tmp_path / "job.log").write_text("step 1 loss 2.0\nstep 2 loss 1.5\n")
    assert triage_command([str(tmp_path)]) == 0
    assert "no failure found in 1 log" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("job.log", b"", "nothing to read: job.log holds no text"),
        ("job.log", bytes(range(8)) * 400, "nothing to read: job.log holds no text"),
        ("data.bin", b"x", "no log found in .; name the files"),
    ],
)
def test_logs_without_text_are_no_clean_logs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    data: bytes,
    said: str,
):
    """An empty log, one that is no text, and a folder without logs: exit code 2, and no word of success."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(data)
    assert triage_command([name if name == "job.log" else "."]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"spmdguard: error: {said}\n")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """``-`` stands for standard input."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(FAILED.encode())))
    assert triage_command(["-", "--no-lint"]) == 1
    assert "rank 1 failed first" in capsys.readouterr().out


def test_a_missing_log_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Exit code 2, and the name of what is missing."""
    assert triage_command([str(tmp_path / "none.log")]) == 2
    assert "none.log: no such file or folder" in capsys.readouterr().err


def test_a_damaged_archive_is_named_and_the_rest_is_read(log: Path, capsys: pytest.CaptureFixture[str]):
    """One unreadable file does not hide what the others say."""
    (log.parent / "a.log.gz").write_bytes(b"\x1f\x8b broken")
    assert triage_command([str(log.parent), "--no-lint"]) == 1
    captured = capsys.readouterr()
    assert "a.log.gz" in captured.err
    assert "rank 1 failed first" in captured.out


def test_terminal_escapes_of_a_log_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Escape sequences and control characters in messages are dropped."""
    (tmp_path / "job.log").write_bytes(
        b"[rank0]: Traceback (most recent call last):\n"
        b'[rank0]:   File "x\x1b]0;owned\x07.py", line 1, in f\n'
        b"[rank0]: ValueError: \x1b[2J\x1b[31mred\x9b31m\x07 text\n"
    )
    triage_command([str(tmp_path), "--no-lint"])
    text = capsys.readouterr().out
    assert "ValueError: red" in text
    assert not any((ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160 for char in text)


def test_own_patterns_come_first(log: Path, capsys: pytest.CaptureFixture[str]):
    """A user's pattern changes what a message means, and brings its own checks."""
    mine = log.parent / "mine.toml"
    mine.write_text(
        '[checks]\nmount = "is /nowhere mounted?"\n[[pattern]]\nname = "mount"\nmatch = "/nowhere"\nrole = "cause"\n'
        'means = "the share is not mounted"\nchecks = ["mount"]\n'
    )
    triage_command([str(log), "--no-lint", "--patterns", str(mine)])
    text = capsys.readouterr().out
    assert "the share is not mounted" in text
    assert "1. is /nowhere mounted?" in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[pattern]]\nname = 'x'\nmatch = '('\nrole = 'cause'\nmeans = ''", "no regular expression"),
        ("[[pattern]]\nname = 'x'\nmatch = 'a'\nrole = 'guilty'\nmeans = ''", "role must be one of"),
        ("[[pattern]]\nname = 'x'\nmatch = 'a'\nrole = 'cause'", "means is missing"),
        (
            "[[pattern]]\nname = 'x'\nmatch = 'a'\nrole = 'cause'\nmeans = ''\nchecks = ['none']",
            "no [checks] entry",
        ),
        (
            "[[pattern]]\nname = 'x'\nmatch = 'a'\nrole = 'cause'\nmeans = ''\ncolour = 1",
            "unknown key 'colour'",
        ),
        ("[[pattern]\n", "not valid TOML"),
        ("pattern = 3", "write each pattern as [[pattern]]"),
    ],
)
def test_bad_patterns_are_refused_with_the_reason(text: str, says: str):
    """The message names file, pattern and what is wrong."""
    with pytest.raises(PatternError) as raised:
        parse(text, "mine.toml")
    assert "mine.toml" in str(raised.value)
    assert says in str(raised.value)


def test_every_own_pattern_has_checks_or_is_no_cause():
    """Whoever is told a cause is told what to look at."""
    assert [
        one.name for one in own_patterns().patterns if one.role in ("cause", "suspect") and not one.checks
    ] == []


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return print, ("run",)


@pytest.mark.parametrize("evil", [_Evil(), [_Evil()], {"entries": {1, 2}}, 1.5j])
def test_a_dump_that_is_more_than_plain_data_is_refused(evil: object, capsys: pytest.CaptureFixture[str]):
    """Nothing in a dump is run."""
    with pytest.raises(NotPlainData):
        plain_data(pickle.dumps(evil, protocol=2))
    assert capsys.readouterr().out == ""


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    ),
    st.sampled_from([2, 4]),
)
def test_plain_data_is_read_as_pickle_would(value: object, protocol: int):
    """Dicts, lists, tuples, text and numbers come out as they went in."""
    assert value == plain_data(pickle.dumps(value, protocol=protocol))


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader_of_dumps(raw: bytes):
    """Damage is an error of its own kind."""
    try:
        plain_data(b"\x80\x02" + raw)
    except NotPlainData:
        return


def test_flight_recorder_dumps_tell_who_is_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Two binary dumps: the rank with the lower number is named, with its line."""
    for rank, (number, operation) in enumerate([(12, "nccl:all_reduce"), (11, "nccl:broadcast")]):
        frames = [
            {"name": "wait", "filename": "/x/site-packages/torch/d.py", "line": 9},
            {"name": "train", "filename": "/job/train.py", "line": 40 + rank},
        ]
        entry = {
            "collective_seq_id": number,
            "profiling_name": operation,
            "state": "started",
            "retired": False,
            "is_p2p": False,
            "frames": frames,
        }
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(
            pickle.dumps({"version": "2.10", "entries": [entry]}, protocol=2)
        )
    assert triage_command([str(tmp_path), "--no-lint", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["kind"], data["ranks"]) == ("parted", [1])
    assert {(40, 0), (41, 1)} == {(stand["place"]["line"], stand["ranks"][0]) for stand in data["stands"]}


_LINES = st.sampled_from(
    [
        *FAILED.splitlines(),
        "╭── Traceback (most recent call last) ──╮",
        "╰──╯",
        "│ a.py:1 in f │",
        "[0]:",
        "  rank      : 99999999999999999999 (local_rank: 1)",
        "  exitcode  : -9 (pid: 12)",
        "srun: error: n: tasks 0-99999999: Killed",
        "During handling of the above exception, another exception occurred:",
        "x" * 30_000,
        "",
        "3: 4: 5: ",
    ]
)


@settings(deadline=None)
@given(st.lists(st.one_of(_LINES, st.text(max_size=60)), max_size=30))
def test_no_log_crashes_triage(lines: list[str]):
    """Any text gives a verdict and a report of bounded width."""
    collector = Collector(own_patterns())
    collector.take(lines_of(io.BytesIO("\n".join(lines).encode("utf-8", "surrogatepass")), "job.log"))
    verdict = judge(collector.evidence())
    assert all(len(line) < 500 for line in to_text(verdict, own_patterns().checks).splitlines())
