"""Parts of a file's text by rows, as splitting it into lines would give them."""

import pytest
from spmdguard_lint.source.reading import decode_source


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a",
        b"a\n",
        b"a\r\nb\rc\n\nd",
        "\ufeffé = 1\n\n# ü".encode(),
        b"\n\n\n",
        b"# coding: latin-1\n\xe9 = 1\n",
    ],
)
def test_rows_are_those_of_the_lines(content: bytes) -> None:
    """Every range of rows, also one that goes on beyond the end, is what the lines joined again are."""
    source = decode_source(content, "x.py")
    for first in range(1, len(source.lines) + 1):
        for last in (None, *range(first, len(source.lines) + 3)):
            assert "\n".join(source.lines[first - 1 : last]) == source.rows(first, last)
