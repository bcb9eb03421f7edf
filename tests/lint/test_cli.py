"""The commands as users type them: what is reported, in which order, and the exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest


def concise(outcome) -> list[str]:
    """The findings, without the lines about the run that follow."""
    return [line for line in outcome.out.splitlines() if re.match(r"\S+:\d+:\d+: ", line)]


def test_exit_codes(tree, in_process, probes):
    """0 when nothing was found, 1 when something was, 0 again with `--exit-zero`."""
    tree({"clean.py": "x = 1\n", "bad.py": "probe190()\n"})
    assert in_process("lint", "clean.py", analysis=probes).exit_code == 0
    assert in_process("lint", "bad.py", analysis=probes).exit_code == 1
    assert in_process("lint", "bad.py", "--exit-zero", analysis=probes).exit_code == 0


def test_findings_in_order_of_place(tree, in_process, probes):
    """Findings come by file, row and column, whatever order the analysis has; equal ones come once."""
    tree({"b.py": "probe191(); probe190()\n", "a.py": "\nprobe190()\n"})
    run = ("lint", "b.py", "a.py", "--output-format", "concise")
    expected = [
        "a.py:2:1: SPG190 `probe190()` is called",
        "b.py:1:1: SPG191 `probe191()` is called",
        "b.py:1:13: SPG190 `probe190()` is called",
    ]
    assert concise(in_process(*run, analysis=probes)) == expected

    def twice(*args):
        return [*probes(*args), *probes(*args)]

    assert concise(in_process(*run, analysis=twice)) == expected


def test_default_selection(tree, in_process, probes):
    """By default: errors and warnings of stable rules, likely or better."""
    tree({"a.py": "probe190_definite()\nprobe191()\nprobe190_possible()\nprobe290()\nprobe390()\n"})
    run = ("lint", "a.py", "--output-format", "concise")

    def rows(*options):
        return [int(line.split(":")[1]) for line in concise(in_process(*run, *options, analysis=probes))]

    assert rows() == [1, 2]
    assert rows("--preview") == [1, 2, 4]
    assert rows("--min-certainty", "possible") == [1, 2, 3]
    assert rows("--min-certainty", "definite") == [1]
    assert rows("--select", "SPG290") == [4]
    assert rows("--extend-select", "SPG290,SPG390") == [1, 2, 4, 5]
    assert rows("--select", "probe-advice") == [5]
    assert rows("--ignore", "SPG191", "--ignore", "SPG1") == []
    assert rows("--select", "SPG1", "--ignore", "SPG191") == [1]


def test_settings_file_applies(tree, in_process, probes):
    """The table in pyproject.toml decides what is looked at and reported, per file too."""
    tree({
        "pyproject.toml": "[tool.spmdguard.lint]\nignore = ['SPG191']\nextend-exclude = ['gen']\n"
        "per-file-ignores = {'tests/**' = ['SPG190']}\n",
        "a.py": "probe190()\nprobe191()\n", "gen/b.py": "probe190()\n", "tests/c.py": "probe190()\n",
    })  # fmt: skip
    run = ("lint", ".", "--output-format", "concise")
    assert concise(in_process(*run, analysis=probes)) == ["a.py:1:1: SPG190 `probe190()` is called"]
    assert len(concise(in_process(*run, "--isolated", analysis=probes))) == 4


def test_excluded_file_named_by_the_user(tree, in_process, probes):
    """A file that the user names is read although it is excluded, unless `--force-exclude` is given."""
    tree({"build/a.py": "probe190()\n"})
    assert in_process("lint", "build/a.py", analysis=probes).exit_code == 1
    assert in_process("lint", "build/a.py", "--force-exclude", analysis=probes).exit_code == 0
    assert in_process("lint", ".", analysis=probes).exit_code == 0
    assert in_process("lint", "build", "--exclude", "a.py", analysis=probes).exit_code == 0


def test_standard_input(tree, process):
    """`-` reads standard input, which goes by the name given and takes the settings near that name."""
    root = tree({"pkg/pyproject.toml": "[tool.spmdguard.lint]\nignore = ['SPG903']\n"})
    outcome = process("lint", "-", "--output-format", "concise", stdin=b"def f(:\n", cwd=root)
    assert outcome.exit_code == 1
    assert outcome.out.startswith("-:1:")
    run = ("lint", "-", "--output-format", "concise", "--stdin-filename")
    assert process(*run, "a/b.py", stdin=b"def f(:\n", cwd=root).out.startswith("a/b.py:1:")
    assert process(*run, "pkg/b.py", stdin=b"def f(:\n", cwd=root).exit_code == 0
    assert process(*run, "a.py", stdin=b"x = '\xff'\n", cwd=root).out.startswith("a.py:1:6: SPG903 ")


def test_statistics(tree, in_process, probes):
    """`--statistics` counts by rule, most often first, in text and in JSON."""
    tree({"a.py": "probe191()\nprobe191()\nprobe190()\n"})
    outcome = in_process("lint", "a.py", "--statistics", analysis=probes)
    assert outcome.out.splitlines()[:2] == ["     2  SPG191  probe-warning", "     1  SPG190  probe-error"]
    outcome = in_process("lint", "a.py", "--statistics", "--output-format", "json", analysis=probes)
    assert json.loads(outcome.out)[0] == {"code": "SPG191", "name": "probe-warning", "count": 2}


def test_quiet_prints_findings_only(tree, in_process, probes):
    """`--quiet` leaves the summary out."""
    tree({"a.py": "probe190()\n", "b.py": ""})
    assert in_process("lint", "b.py", "-q", analysis=probes).out == ""
    outcome = in_process("lint", "a.py", "-q", "--output-format", "concise", analysis=probes)
    assert outcome.out == "a.py:1:1: SPG190 `probe190()` is called\n"


def test_show_settings(tree, in_process):
    """`--show-settings` prints what applies and where it comes from, and lints nothing."""
    root = tree({"pyproject.toml": "[tool.spmdguard.lint]\npreview = true\n", "a.py": "def f(:\n"})
    outcome = in_process("lint", "a.py", "--show-settings")
    assert outcome.exit_code == 0
    assert f"# settings from {root / 'pyproject.toml'}" in outcome.out
    assert "preview = True\n" in outcome.out


@pytest.mark.parametrize(
    "argv",
    [(), ("lint",), ("lint", "--no-such-option", "a.py"), ("lint", "--sel", "SPG9", "a.py"), ("nonsense",)],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2(argv, process):
    """A missing path, unknown options and commands, and abbreviated options are errors with a usage text."""
    outcome = process(*argv)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "usage: spmdguard" in outcome.err


def test_help_and_version(process):
    """`--help` of every command and `--version` print to standard output and exit 0."""
    for argv in (("--help",), ("lint", "--help"), ("rule", "--help"), ("--version",)):
        outcome = process(*argv)
        assert (outcome.exit_code, outcome.err) == (0, "")
        assert "spmdguard" in outcome.out


def test_a_crash_is_no_finding(tree, monkeypatch, capsys):
    """An error of our own ends with exit code 2, its traceback and a request to report it."""
    import spmdguard_lint.cli

    from spmdguard.cli import main

    def crash(argv):
        raise ZeroDivisionError("made up")

    monkeypatch.setattr(spmdguard_lint.cli, "lint_command", crash)
    assert main(["lint", "."]) == 2
    err = capsys.readouterr().err
    assert "ZeroDivisionError: made up" in err
    assert "please report it" in err


def test_what_lint_leaves_is_not_taken_apart_at_exit():
    """It is out of reach of the collector, whatever the exit code; other commands may run code of the user's."""
    program = """
import atexit, gc, sys
from spmdguard.cli import command
before = gc.get_freeze_count()  # Python 3.12 has frozen some itself
atexit.register(lambda: print(gc.get_freeze_count() > before))
sys.exit(command())
"""
    for argv, code, frozen in ((["rule", "SPG101"], 0, "False"), (["lint", "no such file"], 2, "True")):
        done = subprocess.run([sys.executable, "-c", program, *argv], capture_output=True, text=True)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (code, frozen), done.stderr


def test_reader_that_stops_early(tree, process):
    """A closed pipe, as after `| head`, ends the run without a traceback."""
    root = tree({f"f{i}.py": "def f(:\n" for i in range(300)})
    command = [sys.executable, "-m", "spmdguard", "lint", "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        err = running.stderr.read()
        assert (running.wait(timeout=60), err) == (1, b"")


def test_rule_prints_its_page(in_process):
    """`spmdguard rule` prints a rule's page, by code in any case or by name."""
    for text in ("SPG903", "spg903", "cannot-parse"):
        outcome = in_process("rule", text)
        assert outcome.exit_code == 0
        assert outcome.out.startswith("# cannot-parse (SPG903)\n\n## What it does\n")
    outcome = in_process("rule", "SPG999")
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "no rule is called `SPG999`" in outcome.err


def test_rule_lists_all(in_process, probe_rules):
    """`spmdguard rule --all` lists every rule once, a made-up one too as soon as its file is there."""
    from spmdguard_lint.rules import registry

    outcome = in_process("rule", "--all")
    listed = [line.split()[0] for line in outcome.out.splitlines() if line.startswith("  SPG")]
    assert listed == list(registry.codes())
    assert "SPG190" in listed
    assert "SPG290  probe-preview" in outcome.out
