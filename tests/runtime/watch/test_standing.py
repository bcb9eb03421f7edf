"""Standings travel between processes: what is written is read again, and what strangers write does no harm."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmdguard.format import format_ranks, pack_ranks
from spmdguard.watch.cause import STALLED, Cause, read_cause
from spmdguard.watch.relay import read_node
from spmdguard.watch.standing import (
    MAX_STANDING_BYTES,
    Call,
    Place,
    Standing,
    from_data,
    from_json,
    parse_ranks,
    to_data,
    to_json,
)

from .making import standings

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_fields = st.sampled_from([*to_data(Standing(rank=1)), "places", "groups", "calls", "phases", "failure"])


def rounded(standing: Standing) -> dict[str, object]:
    """A standing as it is after the journey: numbers rounded, texts escaped."""
    return to_data(from_data(to_data(standing)))


@settings(max_examples=60, deadline=None)
@given(standings)
def test_a_standing_is_read_as_it_was_written(standing: Standing) -> None:
    """Reading what was written and writing it again gives the same."""
    once = rounded(standing)
    assert once == to_data(from_json(to_json(from_data(once))))
    assert (once.get("rank"), once.get("state")) == (standing.rank, standing.state)


@settings(max_examples=60, deadline=None)
@given(standings, st.dictionaries(_fields, _json, max_size=4))
def test_no_value_from_elsewhere_is_more_than_a_value_error(
    standing: Standing, wrong: dict[str, object]
) -> None:
    """Fields of wrong types and shapes are refused with ValueError, or read as text that is safe to show."""
    data = {**to_data(standing), **wrong}
    try:
        found = from_data(data)
    except ValueError:
        return
    texts = [found.host, found.operation, found.failure, *found.phases]
    texts += [text for each in found.places for text in (each.file, each.function)]
    assert [text for text in texts if not text.isprintable() or len(text) > 4_000] == []


@settings(max_examples=60, deadline=None)
@given(_json)
def test_any_json_is_no_more_than_a_value_error(data: object) -> None:
    """What is no standing, node or cause at all is refused without a crash."""
    with pytest.raises(ValueError):
        from_data([data])
    assert isinstance(read_node(json.dumps({"at": 0, "ranks": [data]}), 1.0), list)
    assert read_node(json.dumps(data), 1.0) == []
    assert read_cause({"kind": data, "ranks": "", "title": ""}) is None or data == STALLED


def test_a_deeply_nested_text_is_refused() -> None:
    """JSON that is nested deeper than Python recurses is a ValueError."""
    with pytest.raises(ValueError):
        from_json("[" * 100_000)


def test_a_text_that_is_too_large_is_refused() -> None:
    """More bytes than a standing may have are refused before they are parsed."""
    with pytest.raises(ValueError, match="at most"):
        from_json(b" " * (MAX_STANDING_BYTES + 1))


def test_the_oldest_calls_are_dropped_where_there_are_too_many() -> None:
    """A standing with many long calls still fits, with its newest calls."""
    place = Place("x" * 300, 1, "y" * 300)
    many = tuple(Call("0", n, "all_reduce", (place,) * 8, True, sizes="z" * 390) for n in range(256))
    written = to_json(Standing(rank=3, calls=many))
    assert len(written) <= MAX_STANDING_BYTES
    found = from_json(written)
    assert (found.rank, found.calls[-1].number) == (3, 255)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5_000), unique=True).map(sorted))
def test_ranks_are_ranges_and_back(ranks: list[int]) -> None:
    """Ranges of ranks are read as the ranks that they were made of."""
    assert tuple(ranks) == parse_ranks(format_ranks(ranks)) == parse_ranks(pack_ranks(ranks))


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (range(0, 4096, 8), "0-4088/8"),
        ([0, 1, 2, 8, 16, 24], "0-2, 8-24/8"),
        ([5, 9], "5, 9"),
        ([5, 6], "5-6"),
        ([3], "3"),
        ([], ""),
    ],
)
def test_ranks_of_a_grid_are_short(ranks: Sequence[int], text: str) -> None:
    """Ranks with equal steps, as in a mesh of devices, are one run."""
    assert pack_ranks(ranks) == text


@pytest.mark.parametrize("text", ["-", "1-", "a", "1-2-3", "0-999999999", "1;2", "٣", "1-5/0", "1-5/"])
def test_what_is_no_range_of_ranks_is_refused(text: str) -> None:
    """Texts that are no ranges, and ranges of too many ranks, are ValueErrors."""
    with pytest.raises(ValueError):
        assert parse_ranks(text) != (1,)


def test_a_cause_cannot_steer_a_terminal() -> None:
    """Escape sequences and extra lines in a cause from elsewhere are shown as escapes."""
    found = read_cause(Cause(STALLED, "0", "bad\x1b[2J", "one\x1b]0;x\x07\ntwo").to_note())
    assert found is not None
    assert found.title == "bad\\x1b[2J"
    assert found.report.split("\n") == ["one\\x1b]0;x\\x07", "two"]
