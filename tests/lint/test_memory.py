"""A run leaves nothing of the programs that it read: an editor or a test may lint thousands in one process."""

from __future__ import annotations

import ast
import gc
import sys
from collections import Counter

import spmdguard_lint
from spmdguard_lint.values.value import Value, constant, external, symbol

from tests.lint.generated.compare import spmdguard_linter
from tests.lint.generated.programs import from_seed


def _objects() -> Counter[str]:
    gc.collect()
    return Counter(type(each).__qualname__ for each in gc.get_objects())


def _values() -> list[Value]:
    """What modules of the linter make when they are imported."""
    names = [name for name in sys.modules if name.startswith(spmdguard_lint.__name__)]
    return [each for name in names for each in vars(sys.modules[name]).values() if isinstance(each, Value)]


def test_nothing_of_a_program_is_kept() -> None:
    """Trees, values and places of 30 programs are gone after them."""
    for index in range(30):
        spmdguard_linter(from_seed(3, index, full=True))
    before = _objects()
    for index in range(30, 60):
        spmdguard_linter(from_seed(3, index, full=True))
    more = _objects() - before
    assert not {name: more[name] for name in ("Place", "Value", "Taint", "Module", *vars(ast)) if more[name]}
    assert more.total() < 200


def test_constants_keep_their_keys() -> None:
    """A value made in a later run equals the same one that a module made when it was imported."""
    spmdguard_linter(from_seed(3, 0, full=True))
    made = {value.key: value for value in _values()}
    assert {value.tag for value in made.values()} == {"const", "ext", "sym"}
    make = {"const": constant, "ext": external, "sym": symbol}
    assert {key: make[value.tag](*value.data).key for key, value in made.items()} == {
        key: key for key in made
    }
