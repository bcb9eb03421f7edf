"""From text to tree, and every way to fail."""

from __future__ import annotations

import gc
import pickle
import sys
import warnings

import pytest
from spmdguard_lint.source.parsing import CannotParse, check_syntax, gc_paused, parse

from .build import source

BAD = {
    "syntax": ("x = 1\ndef f(:\n", 2),
    "null byte": ("x = 1\ny = '\0'\n", 2),
    "parentheses": ("(" * 1000 + ")" * 1000, 1),
    "many signs": ("x = " + "-" * 100_000 + "1", 1),
    "indentation": ("".join(f"{' ' * i}if x:\n" for i in range(300)), 101),
    "lone surrogate": ("x = '\ud800'", 1),
    "unclosed": ("'''", 1),
}


if sys.version_info >= (3, 11):  # Python 3.10 builds the tree
    BAD["long sum"] = ("x = " + "1 + " * 100_000 + "1", 1)


@pytest.mark.parametrize(("text", "row"), BAD.values(), ids=BAD)
def test_what_is_no_python_is_one_error(text: str, row: int) -> None:
    """``parse`` and ``check_syntax`` raise ``CannotParse`` with file, row and reason, whatever is wrong."""
    for reader in (parse, check_syntax):
        with pytest.raises(CannotParse) as caught:
            reader(source("bad.py", text))
        assert ("bad.py", row) == (caught.value.filename, caught.value.row)
        assert caught.value.reason and caught.value.column >= 1


def test_the_error_survives_pickling() -> None:
    """It may come from another process."""
    error = pickle.loads(pickle.dumps(CannotParse("a.py", 1, 2, "why")))
    assert str(error) == "a.py:1:2: cannot parse: why"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeffx = 1\n",
        "x = 1\r\ny = 2\r\n",
        "# coding: latin-1\nx = 'é'\n",
        "def f():\n    x = 1\n    global x\n",
    ],
)
def test_what_parses_passes_the_check(text: str) -> None:
    """A byte order mark, any newline, a coding comment, and what only the compiler would refuse."""
    assert parse(source("good.py", text)) is not None
    check_syntax(source("good.py", text))


def test_warnings_of_the_read_code_are_not_shown() -> None:
    """Invalid escapes and comparisons with literals are the business of others."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = "import re\nre.compile('\\d')\nassert (1, 'x')\nx is 1\n"
        parse(source("a.py", text))
        check_syntax(source("a.py", text))


def test_the_collector_rests_while_parsing_and_is_left_as_found() -> None:
    """Nested pauses end with the outermost."""
    assert gc.isenabled()
    with gc_paused():
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        with pytest.raises(CannotParse):
            parse(source("bad.py", "def"))
        assert not gc.isenabled()
    assert gc.isenabled()
