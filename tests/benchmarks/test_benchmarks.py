"""The benchmark commands run, measure what they say, and report a crash as one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks import lint_speed, measure, real_packages, startup

BAD = "import torch.distributed as dist\n\ndef f():\n    if dist.get_rank() == 0:\n        dist.barrier()\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two files, one with a defect."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "bad.py").write_text(BAD)
    (folder / "broken.py").write_text("x = (\n")
    return folder


def test_cpu_time_counts_children():
    """The CPU time of a process includes the processes it started."""
    spin = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}])"
    assert measure.run([sys.executable, "-c", parent], timeout_s=60).cpu_s > 0.2


def test_a_process_over_its_timeout_is_killed():
    """A command that does not end is killed and says so by its exit code."""
    assert measure.run([sys.executable, "-c", "input()\nwhile True: pass"], timeout_s=0.2).exit_code != 0
    assert measure.run([sys.executable, "-c", "while True: pass"], timeout_s=0.2).exit_code == -9


def test_real_packages_reports_findings_unread_files_and_source(package: Path, tmp_path: Path, capsys):
    """Findings are counted by code and dumped with the source around them; unreadable files show apart."""
    dump = tmp_path / "findings.json"
    assert real_packages.main([str(package), "--dump", str(dump)]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert "101x1" in row
    assert "903x1" in row
    found = [entry for entry in json.loads(dump.read_text()) if entry["code"] == "SPG101"]
    assert [entry["package"] for entry in found] == ["package"]
    assert any("dist.barrier()" in line for line in found[0]["source"])


def test_real_packages_reports_a_crash(package: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    """A linter that dies makes the command fail and shows what it said."""
    monkeypatch.setattr(measure, "linter", lambda: [sys.executable, "-c", "raise KeyError('gone')"])
    assert real_packages.main([str(package)]) == 1
    assert "KeyError: 'gone'" in capsys.readouterr().out


def test_lint_speed_prints_a_ratio_for_each_package_and_the_total(package: Path, capsys):
    """Every package has its table, and all together have one."""
    assert lint_speed.main([str(package), str(package), "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count("libcst.parse_module, all files") == 3
    assert "2 files, 6 lines, 1 files name a collective" in out


def test_startup_script_has_the_length_asked_for_and_matters_to_the_linter():
    """The script is about 300 lines of code with collectives, so that the linter has work to do."""
    text = startup.script(300)
    assert 280 <= len(text.splitlines()) <= 300
    assert "all_reduce" in text or "barrier" in text
