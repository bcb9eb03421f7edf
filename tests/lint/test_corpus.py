"""The linter on the corpus: nothing found before is lost, no new false alarm, every gain is recorded."""

from __future__ import annotations

import pytest

from tests.corpus.scoring import (
    CASES,
    HELD_OUT,
    VARIANTS,
    Case,
    Score,
    better,
    cases,
    recorded_state,
    score,
    summary,
    worse,
)

COLLECTION = [*cases(CASES), *cases(HELD_OUT)]
OWN = list(cases(VARIANTS))
RECORDED = recorded_state()
UPDATE = "record it: python -m tests.corpus.ratchet --update"


def _check(case: Case, now: Score) -> None:
    assert case.name in RECORDED, f"{case.name} has no recorded state; {UPDATE}"
    assert worse(now, RECORDED[case.name]) == []
    assert not better(now, RECORDED[case.name]), f"{case.name} is better than recorded ({now}); {UPDATE}"


ONCE = [
    pytest.param(case, id=case.name, marks=[pytest.mark.once] if case.name.startswith("held_out/") else [])
    for case in COLLECTION
]


@pytest.mark.parametrize("case", ONCE)
def test_case_is_as_good_as_recorded(case: Case) -> None:
    """A case of the collection is found as it was, and its good twin stays as clean as it was."""
    _check(case, score(case))


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_variant_is_as_good_as_recorded(case: Case) -> None:
    """A variant of the named hazards is found, and its good twin gets no report at all."""
    _check(case, score(case, strict=True))


def test_recorded_state_is_of_the_present_cases() -> None:
    """The record has an entry for every case and for nothing else."""
    assert sorted(RECORDED) == sorted(case.name for case in [*COLLECTION, *OWN])


def test_recorded_state_meets_the_bars() -> None:
    """Recall and false alarms of the record: collection 0.70 and none; variants all found, twins clean."""
    collection = summary([s for name, s in RECORDED.items() if name.startswith("cases/")])
    own = summary([s for name, s in RECORDED.items() if name.startswith("variants/")])
    assert collection.recall >= 0.70 and collection.num_false == 0, collection.text()
    assert own.recall == 1.0 and own.num_false == 0, own.text()


def test_ratchet_sees_loss_and_gain() -> None:
    """A lost find and a new false alarm are worse; a find and a vanished alarm are better."""
    found, missed = Score("line", ("SPG101",)), Score("no")
    noisy = Score("line", ("SPG101",), ("SPG101@3",))
    assert worse(missed, found) == ["was found: line, is now: no"]
    assert worse(noisy, found) == ["false alarms were [], are now ['SPG101@3']"]
    assert (better(found, missed), better(found, noisy), better(found, found)) == (True, True, False)


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_variant_is_well_formed(case: Case) -> None:
    """A variant has both sides, differs between them, and its lines exist in the named file."""
    bad, good = case.side("bad"), case.side("good")
    assert bad is not None and good is not None
    file = bad if bad.is_file() else bad / case.facts["file"]
    twin = good if good.is_file() else good / case.facts["file"]
    lines = file.read_text().splitlines()
    assert file.read_text() != twin.read_text()
    assert all(lines[row - 1].strip() for row in case.facts["bad_lines"])
