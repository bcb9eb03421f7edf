"""Sizes of tensors behind the first dimension: a rank has more or fewer rows than others, all as wide."""

from __future__ import annotations

from ..values.value import Value, doubted, is_const, retaint

_SIZES = frozenset({"attr:shape", "call:size"})


def width(size: Value, whole: Value, index: Value) -> Value:
    """``x.shape[1]`` and ``x.size(-1)``: that the rank decides how many rows ``x`` has hardly makes them differ."""
    first = not is_const(index) or not isinstance(index.data[0], int) or index.data[0] == 0
    if first or whole.tag != "expr" or whole.data[0] not in _SIZES or not size.taint:
        return size
    return retaint(size, doubted(size.taint, "rank", "group-rank"), size.trip)
