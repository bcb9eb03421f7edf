"""Calls are read from text as a slower pattern, which begins with the words, finds them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from spmdguard_lint.source.calls import calls_in

REPOSITORY = Path(__file__).parents[2]
FORWARD = re.compile(r"(def )?(?<![\w.])([\w.]+)(?=[ \t]*\()")

TEXTS = {
    "a.b.c(x)": [("a.b.c", False)],
    "f(g(x), h.i (y))": [("f", False), ("g", False), ("h.i", False)],
    "def f(x):\n    return f(x)": [("f", True), ("f", False)],
    "async def f(): pass": [("f", True)],
    "f().g(x[0].h())": [("f", False), (".g", False), (".h", False)],
    "(a)(b) [c](d)": [],
    "f\n(x)": [],
    "f(x); f(y)": [("f", False)],
}


@pytest.mark.parametrize("text", TEXTS)
def test_calls_are_found_in_order(text):
    """Each name once, with all its dots, and definitions apart."""
    assert list(calls_in(text)) == TEXTS[text]


def test_both_ways_agree_on_real_files():
    """On the files of this repository the reversed pattern finds what the forward one finds, in the same order."""
    for path in sorted((REPOSITORY / "lint").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        forward = dict.fromkeys((name, bool(definition)) for definition, name in FORWARD.findall(text))
        assert list(calls_in(text)) == list(forward), path
