"""`spmdguard preflight` with real processes: what is wrong with one rank or host is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spmdguard.preflight.links import preflight_command

from ..processes import Zygote

pytestmark = pytest.mark.processes


def findings(
    zygote: Zygote, fault: str, rank: int, folder: Path, code: int = 0
) -> list[tuple[str, str, str]]:
    for name in ("shared", "own"):
        (folder / name).mkdir()
    size = 6 if fault == "host" else 4  # of two hosts nobody can say which one is slow
    ended = zygote.run(
        "preflighting:run", ranks=size, timeout_s=60.0, fault=fault, rank=rank, shared=str(folder)
    )
    assert ended.codes == [code] * size, ended.report()
    data: dict[str, Any] = json.loads(ended[0].out)
    assert len(data["ranks"]) == size
    assert list((folder / "shared").iterdir()) == []
    return [(each["level"], each["layer"], each["who"]) for each in data["findings"]]


@pytest.mark.parametrize(
    ("fault", "rank", "expected", "code"),
    [
        ("slow", 1, ("slow", "pairs", "rank 1 (host a)"), 0),
        ("host", 2, ("slow", "pairs", "host b"), 0),
        ("wrong", 2, ("failed", "all hosts", "rank 2 (host b)"), 1),
        ("compute", 3, ("slow", "one process", "rank 3 (host b)"), 0),
        ("clock", 1, ("slow", "all hosts", "rank 1 (host a)"), 0),
        ("folder", 3, ("failed", "shared folder", "rank 3 (host b)"), 1),
    ],
)
def test_what_is_wrong_is_named(
    zygote: Zygote, tmp_path: Path, fault: str, rank: int, expected: tuple[str, str, str], code: int
) -> None:
    """A slow rank, a slow host, a wrong value, a wrong clock and an unshared folder are each named."""
    found = findings(zygote, fault, rank, tmp_path, code)
    assert expected in found
    assert {each for each in found if each[0] == "failed"} <= {
        expected,
        ("failed", "one host", expected[2]),
        ("failed", "pairs", expected[2]),
    }


def test_a_good_job_has_no_failure(zygote: Zygote, tmp_path: Path) -> None:
    """Where nothing is wrong, nothing is called failed, and the exit code is 0."""
    assert [each for each in findings(zygote, "none", -1, tmp_path) if each[0] == "failed"] == []


def test_a_rank_that_hangs_ends_the_others_with_the_layer(zygote: Zygote) -> None:
    """Where a rank never answers, the others end after the timeout and say in which layer."""
    ended = zygote.run(
        "preflighting:run", ranks=2, timeout_s=25.0, fault="hang", rank=1, argv=["--timeout", "4"]
    )
    assert ended[0].code == 1, ended.report()
    assert "layer 'pairs' did not end: RuntimeError: " in ended[0].err


def test_one_process_without_a_launcher(tmp_path: Path) -> None:
    """Started alone it measures this process, prints the report and writes JSON."""
    output = tmp_path / "found.json"
    arguments = ["--memory-mib", "4", "--message-mib", "0.1", "--backend", "gloo"]
    done = subprocess.run(
        [sys.executable, "-m", "spmdguard", "preflight", *arguments, "--output", str(output)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(
        "verdict: nothing stands out\n"
        "  one rank has no links: start one for each device, by torchrun ... -m spmdguard preflight\n"
    )
    assert json.loads(output.read_text())["verdict"] == "good"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--backend", "nosuch"], "cannot start the process group: "),
        (["--output", "/nonexistent/found.json"], "cannot write /nonexistent/found.json: No such file"),
        (["--folder", "/nonexistent"], "layer 'folder' did not end: FileNotFoundError: "),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(arguments: list[str], said: str) -> None:
    """A backend, file or folder that is not there is no bug of this package: one line, and exit code 1."""
    small = ["--memory-mib", "1", "--message-mib", "0.01"]
    done = subprocess.run(
        [sys.executable, "-m", "spmdguard", "preflight", *small, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("spmdguard preflight: "), done.stderr
    assert said in last


@pytest.mark.parametrize("option", ["--timeout", "--message-mib", "--memory-mib"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon"])
def test_sizes_and_times_are_above_zero(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is refused before anything starts, with the value."""
    with pytest.raises(SystemExit) as ended:
        preflight_command([f"{option}={value}"])
    assert ended.value.code == 2
    assert f"argument {option}: a number above 0 is needed, got {value!r}" in capsys.readouterr().err
