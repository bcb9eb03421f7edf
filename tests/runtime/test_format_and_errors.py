"""Text for people: ranks, places, exceptions and the three-line error body."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest

from spmdguard import errors
from spmdguard.format import (
    add_note,
    find_user_frame,
    format_error,
    format_exception_line,
    format_place,
    format_ranks,
    format_traceback,
    name_ranks,
)

EXAMPLES: list[errors.SpmdguardError] = [
    errors.CollectiveInRankLocalError(
        operation="all_reduce",
        group="group 'dp' (ranks 0-3)",
        region="rank-local 'log'",
        place="t.py:3",
    ),
    errors.CommunicationBroken(
        operation="barrier", rank=2, failed="train_step", number=7, failure="OSError: lost"
    ),
    errors.RanksMissing(
        operation="sync_should_stop",
        missing=[1, 2, 3, 7],
        arrived=[0],
        group="group 'default_pg' (ranks 0-7)",
        place="t.py:9 in main",
        failure="RuntimeError: timed out",
        elapsed_s=3.04,
    ),
    errors.RanksOutOfStep(operation="sync_should_stop", own=4, other=5, rank=0, place="t.py:9"),
    errors.OtherRanksFailed(failures={2: "OSError: disk", 3: "KeyError: 1"}, place="end of the run"),
    errors.UndecoratedWork(
        collectives=["allreduce at train.py:3 in step: 2 times on ranks 0-1"], main_only=[]
    ),
    errors.TeardownTimeout(timeout_s=30.0, rank=1),
    errors.LaunchFailed(
        faults=[("missing-rank", "rank 1 of 2 did not come", "rank 0 came", "look")],
        process="rank 0",
        elapsed_s=1.0,
    ),
    errors.StoreUnreachable(address="a:29500", kind="refused", reason="nothing listens there"),
]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([], ""),
        ([3], "3"),
        ([0, 1], "0-1"),
        ([5, 0, 2, 1, 5], "0-2, 5"),
        ([0, 2, 4], "0, 2, 4"),
        (range(1000), "0-999"),
    ],
)
def test_ranks_are_compacted_to_ranges(ranks: Any, expected: str) -> None:
    """Consecutive ranks become one range; order and duplicates do not matter."""
    assert expected == format_ranks(ranks)


def test_one_rank_is_singular() -> None:
    """One rank is "rank", more are "ranks"."""
    assert (name_ranks([3]), name_ranks([0, 1])) == ("rank 3", "ranks 0-1")


def test_error_bodies_leave_out_what_is_unknown() -> None:
    """Title, then saw, where and do, aligned; empty parts are left out."""
    assert format_error("t", saw="a", where="b", do="c") == "t\n  saw:   a\n  where: b\n  do:    c"
    assert format_error("t", do="c") == "t\n  do:    c"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: errors.SpmdguardError) -> None:
    """Type, attributes and text come back from a pickle."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(error), error.__dict__, str(error)) == (type(copy), copy.__dict__, str(copy))


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_say_saw_where_and_do(error: errors.SpmdguardError) -> None:
    """Every error has a title and the three parts, one line each."""
    title, *parts = str(error).splitlines()
    assert title
    assert [part.split()[0] for part in parts] == ["saw:", "where:", "do:"]


def test_every_error_has_an_example_here() -> None:
    """The list of examples above is complete."""
    named = {getattr(errors, name) for name in errors.__all__} - {errors.SpmdguardError}
    assert named == {type(error) for error in EXAMPLES}


def test_missing_ranks_are_named_in_the_title() -> None:
    """RanksMissing names the ranks that did not come and how long the others waited."""
    title, saw, *_ = str(EXAMPLES[2]).splitlines()
    assert title == "ranks 1-3, 7 did not come to sync_should_stop"
    assert saw.startswith("  saw:   rank 0 waited 3.0 s on group 'default_pg'")


def test_unknown_missing_ranks_are_admitted() -> None:
    """Where the store is gone, RanksMissing says that it does not know."""
    values = {**EXAMPLES[2].__dict__, "missing": None}
    assert "which ranks were missing is not known" in str(errors.RanksMissing(**values))


def test_foreign_numbers_are_told_as_another_collective() -> None:
    """Numbers that no call could have are told as another collective's."""
    garbage = errors.RanksOutOfStep(operation="sync_should_stop", own=5, other=-99, rank=0, place="t.py:9")
    assert "another collective answered rank 0 at call 5" in str(garbage)


def test_exceptions_that_cannot_be_shown_are_named() -> None:
    """An exception whose text raises is still named."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert format_exception_line(Mute()).endswith("Mute: <its text could not be rendered>")
    assert "Mute" in format_traceback(Mute())
    assert format_exception_line(KeyError("x")) == "KeyError: 'x'"
    assert format_exception_line(ValueError()) == "ValueError"


def test_notes_are_kept_on_every_python() -> None:
    """Notes are stored and shown, also where Python has no add_note."""
    error = ValueError("x")
    add_note(error, "first")
    add_note(error, "second")
    assert error.__notes__ == ["first", "second"]  # type: ignore[attr-defined]  # since Python 3.11
    assert format_traceback(error).endswith("ValueError: x\nfirst\nsecond\n")


def test_places_are_the_users() -> None:
    """A place is file, line and function of the innermost frame outside this package and torch."""
    line = sys._getframe().f_lineno + 1
    place = format_place(find_user_frame())
    assert place.endswith(f"test_format_and_errors.py:{line} in test_places_are_the_users")
    assert format_place(None) == "unknown place"
