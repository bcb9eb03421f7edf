"""The words that an expression needs: no line is passed over in which it would be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmdguard.triage.literals import any_of, need_of
from spmdguard.triage.patterns import Patterns, own_patterns

LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize(
    ("expression", "need"),
    [
        (r"out of memory", {"out of memory"}),
        (r"CUDA error: \w+ (?:access|launch)", {"cuda error: "}),
        (r"(?:access|launch) \d", {"access", "launch"}),
        (r"(?i)Killed \w (?P<who>process|OOM)", {"killed "}),
        (r"(?:abc)?defg", {"defg"}),
        (r"(?:abcdef)+", {"abcdef"}),
        (r"(?:abcdef)*x", set()),
        (r"(?:abcdef|)x", set()),
        (r"(?!abcdef)x", set()),
        (r"[ab]c|\d+", set()),
        (r"über", {"ber"}),
        (r".*", set()),
    ],
)
def test_what_every_match_holds(expression: str, need: set[str]) -> None:
    """The longest certain part is taken, all alternatives, and nothing that may be left out."""
    assert set(need_of(re.compile(expression))) == need


def test_every_own_pattern_needs_a_word() -> None:
    """So that a line without any of them costs one search."""
    assert [each.name for each in own_patterns().patterns if not need_of(each.match)] == []


def find_slowly(patterns: Patterns, text: str, place: str) -> str | None:
    fits = [each for each in patterns.patterns if each.place in (place, "both") and each.match.search(text)]
    return fits[0].name if fits else None


def test_the_same_patterns_are_found_as_without_words() -> None:
    """In every line of the real logs, as it is and in capital letters, for both places."""
    patterns = own_patterns()
    lines = {
        line for path in LOGS.glob("*.log") for line in path.read_text(errors="replace").splitlines()[:2000]
    }
    assert len(lines) > 1000
    num_found = 0
    for line in lines:
        for text in (line, line.upper()):
            for place in ("exception", "line"):
                found = patterns.find(text, place)
                assert (found[0].name if found else None) == find_slowly(patterns, text, place), text
                num_found += found is not None
    assert num_found > 100


@given(
    st.lists(st.text(alphabet="ab.(", min_size=1, max_size=4), max_size=6),
    st.text(alphabet="ab.(", max_size=9),
)
def test_any_of_finds_what_a_loop_finds(words: list[str], text: str) -> None:
    """The tree of letters finds a text exactly where one of the words stands in it."""
    assert (any_of(words).search(text) is not None) == any(word in text for word in words)
