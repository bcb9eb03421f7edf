"""What no fix touches is written back byte for byte, whatever the text is."""

from __future__ import annotations

import codecs
import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spmdguard_lint.fixes.edits import apply_edits, edits_between, lines_of, overlap
from spmdguard_lint.fixes.rewrite import Rewrite
from spmdguard_lint.fixes.script import CannotEdit, Script
from spmdguard_lint.fixes.texts import raw_text, to_bytes
from spmdguard_lint.source.reading import CannotRead, decode_source

from tests.lint.fuzzing.grow import grown

pytestmark = pytest.mark.once

NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.text(st.sampled_from("ab \t\n\r\x0c\x1c\u2028é#"), max_size=40)


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """Generated Python, with any newlines, trailing blanks, comments, a byte order mark or none."""
    text = grown(random.Random(draw(st.integers(0, 10**6))))
    lines = text.split("\n")
    newlines = draw(st.lists(NEWLINES, min_size=1, max_size=3))
    tails = draw(st.lists(st.sampled_from(["", " ", "\t", "  # note", "\x0c"]), min_size=1, max_size=4))
    plain = '"""' not in text and "'''" not in text and "\\" not in text
    made = ""
    for index, line in enumerate(lines):
        tail = tails[index % len(tails)] if plain and line.strip() else ""
        made += line + tail + (newlines[index % len(newlines)] if index + 1 < len(lines) else "")
    mark = codecs.BOM_UTF8 if draw(st.booleans()) else b""
    return mark + made.encode("utf-8", "replace")


@settings(max_examples=40, deadline=None)
@given(sources())
def test_a_file_without_edits_is_written_back_byte_for_byte(content: bytes) -> None:
    """Taking a file apart and putting it together changes no byte, or the file is refused."""
    try:
        source = decode_source(content, "a.py")
    except CannotRead:
        return
    assert to_bytes(source, raw_text(source)) == content
    try:
        script = Script(source)
    except CannotEdit:
        return
    assert to_bytes(source, Rewrite(script).code()) == content


def test_the_generated_files_are_not_all_refused() -> None:
    """The byte-for-byte check is not empty: a third of the generated files and more can be taken apart."""
    num_read = 0
    for seed in range(24):
        with contextlib.suppress(CannotEdit, CannotRead):
            Script(decode_source(grown(random.Random(seed)).encode("utf-8", "replace"), "a.py"))
            num_read += 1
    assert num_read >= 8


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS)
def test_edits_turn_one_text_into_the_other(old: str, new: str) -> None:
    """The edits between two texts, applied to the first, give the second; between equal texts there are none."""
    edits = edits_between("a.py", old, new)
    assert apply_edits(old, edits) == new
    assert (edits == ()) == (old == new)
    assert "".join(lines_of(old)) == old


def test_overlapping_edits_are_noticed() -> None:
    """Edits of the same or of neighbouring lines overlap, others do not."""
    old = "a\nb\nc\nd\ne\n"
    first, same = edits_between("a.py", old, "A\nb\nc\nd\ne\n"), edits_between("a.py", old, "X\nb\nc\nd\ne\n")
    near, far = edits_between("a.py", old, "a\nB\nc\nd\ne\n"), edits_between("a.py", old, "a\nb\nc\nd\nE\n")
    assert [overlap(first, other) for other in (same, near, far)] == [True, True, False]
