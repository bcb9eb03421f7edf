"""Shards of distributed tensors: whether one is empty, a rank says of its own alone.

The rows of a tensor are dealt out over the ranks; where there are fewer rows than ranks, some have none. How a shard
is laid out, and that it is smaller than the whole, is the same everywhere as a rule, and no reason to differ.
"""

from __future__ import annotations

from ..values.value import NO_TAINT, Place, Taint, Taints, Value, alternatives, is_const, retaint, union

_SIZES = frozenset({"call:numel", "call:nelement", "call:size", "len"})
_SAME_ROWS = frozenset(
    f"call:{name}"
    for name in ("detach", "float", "abs", "flatten", "contiguous", "to", "cuda", "cpu", "clone", "bfloat16")
)
_TESTS = {"==": 0, "!=": 0, ">": 0, "<=": 0, ">=": 1, "<": 1}
_OF_ONE = "the shard of one rank"


def asks_if_empty(result: Value, operator: str, left: Value, right: Value, place: Place) -> Value:
    """A comparison that asks whether a shard has any rows, with the reason why ranks differ in that."""
    if operator in _TESTS and is_const(right) and right.data[0] == _TESTS[operator]:
        return has_rows(result, left, place)
    return result


def has_rows(result: Value, size: Value, place: Place) -> Value:
    """A condition with the reason why ranks differ in it, where it is about the size of a shard."""
    why = _why(size, place)
    return retaint(result, union(result.taint, why), result.trip) if why else result


def _why(size: Value, place: Place) -> Taints:
    if size.tag != "expr":
        return NO_TAINT
    operator, operands = size.data
    if operator == "getitem" and is_const(operands[1]) and operands[1].data[0] == 0:
        operator, operands = operands[0].data if operands[0].tag == "expr" else ("", ())
        operator = "len" if operator in ("attr:shape", "call:size") else ""
    if operator not in _SIZES or not any(map(_is_shard, alternatives(operands[0]))):
        return NO_TAINT
    return frozenset({Taint("data", place, _OF_ONE, "likely")})


def _is_shard(value: Value) -> bool:
    while value.tag == "expr" and value.data[0] in _SAME_ROWS:
        value = value.data[1][0]
    return value.tag == "expr" and value.data[0] in ("call:to_local", "attr:_local_tensor")
