"""The linter never crashes: a deterministic slice of ``python -m tests.lint.fuzz``."""

from __future__ import annotations

import ast
import sys
import warnings

import pytest
from spmdguard_lint.source.newer_syntax import parse_newer

from tests.lint import fuzz
from tests.lint.fuzzing import trial
from tests.lint.fuzzing.trees import without_empty_texts
from tests.lint.fuzzing.trial import project, run_trial

SLICE = 120
STEP = 20


@pytest.mark.parametrize("first", range(0, SLICE, STEP))
def test_made_up_and_damaged_projects_end_with_findings(first: int):
    """Whatever text it is given, the linter reports findings; it raises nothing and skips no file."""
    trials = [run_trial(seed) for seed in range(first, first + STEP)]
    assert {t.seed: t.crash for t in trials if t.crash} == {}


def test_projects_are_decided_by_their_seed():
    """A crash found in a long run is found again by its seed."""
    assert project(7) == project(7)
    assert project(7) != project(8)


def test_slice_holds_both_readable_and_unreadable_projects():
    """The slice reaches the analysis and the error path, so that neither is tested in name only."""
    codes = [run_trial(seed).codes for seed in range(40)]
    assert any("SPG903" in found for found in codes)
    assert any(found and "SPG903" not in found for found in codes)


def test_a_crash_of_the_linter_is_reported(monkeypatch: pytest.MonkeyPatch):
    """The check can fail: an exception out of the linter becomes a crash with its place."""

    def broken(*_: object, **__: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(trial, "lint", broken)
    found = run_trial(0)
    assert "KeyError: 'gone'" in found.crash
    assert "in broken" in found.place


def test_a_process_that_dies_is_reported_with_its_seed(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """A dead interpreter costs no more than the seed it died of; the others are still run."""
    fake = tmp_path / "python"
    record = '{"seed": %d, "codes": [], "place": "", "seconds": 0}'
    fake.write_text(
        "#!/bin/sh\n"
        'case "$4" in\n'
        f"  0:3) echo 'start 0'; echo '{record % 0}'; echo 'start 1'; kill -SEGV $$;;\n"
        f"  2:3) echo 'start 2'; echo '{record % 2}';;\n"
        "esac\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    records = fuzz.batch(0, 3, 1.0)
    assert [record["seed"] for record in records] == [0, 1, 2]
    assert [place and "-11" in str(place) for place in (r["place"] for r in records)] == ["", True, ""]


def test_a_trial_over_its_limit_is_reported(monkeypatch: pytest.MonkeyPatch):
    """A linter that does not end is interrupted, and counts as a crash."""

    def endless(*_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(trial, "lint", endless)
    assert "TookTooLong" in fuzz.trial_within(0, 0.05).crash


@pytest.mark.parametrize("first", range(0, 60, STEP))
def test_newer_grammar_reader_agrees_with_ast_parse_or_refuses(first: int):
    """On made-up and damaged sources too, the libcst reader builds the tree of ``ast.parse`` or refuses."""
    for seed in range(first, first + STEP):
        for text in project(seed).values():
            try:
                found = parse_newer(text, "fuzzed.py")
            except SyntaxError:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    # type parameters and aliases (Python 3.12) are read as something plainer
                    expected = ast.parse(text, feature_version=min(sys.version_info[:2], (3, 11)))
                except SyntaxError:
                    continue  # newer grammar, or a rule that libcst does not check
            assert ast.dump(without_empty_texts(expected)) == ast.dump(found), f"seed {seed}"
