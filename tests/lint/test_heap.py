"""A heap behaves as a dict of its own that is copied whole would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spmdguard_lint.interpreter import heap as heaps
from spmdguard_lint.interpreter.heap import Heap

_PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.booleans()), max_size=40)


@pytest.fixture(scope="module", autouse=True)
def _few() -> object:
    """New tables are made often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heaps, "_FEW", 3)
        yield


@given(_PAIRS)
def test_copies_are_apart_and_compare_as_dicts_do(steps: list[tuple[int, int, bool]]) -> None:
    """Each step writes an object into one of the heaps, or adds a copy of it; a dict beside each is the reference."""
    pairs: list[tuple[Heap, dict[object, dict[str, object]]]] = [(Heap(), {})]
    for which, name, copies in steps:
        heap, plain = pairs[which % len(pairs)]
        if copies:
            pairs.append((heap.copy(), dict(plain)))
        else:
            heap[name] = plain[name] = {}
    for heap, plain in pairs:
        assert list(heap.items()) == list(plain.items())
        for other, reference in pairs:
            differing = {name for name, fields in reference.items() if plain.get(name) is not fields}
            assert dict(heap.differing(other)).keys() == differing
            assert all(fields is reference[name] for name, fields in heap.differing(other))
            assert set(heap.missing(other)) == plain.keys() - reference.keys()
            assert all((name in other) == (name in reference) for name in range(13))
            assert all(other.get(name) is reference.get(name) for name in range(13))
