"""Lengths that a rank finds in its own data: the longest of its samples, or how many elements count.

Terminology: a number is *found in data* when it is the greatest, the least or the sum of values of this rank's own
batch (``int(valid.max())``, ``mask.sum(1).max().item()``, ``max(len(text) for text in batch)``), or is computed from
such a number. A tensor that is cut or made to such a length has another size on each rank. What was reduced over the
ranks before has lost the reason, and so has what is padded to a number from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..values.value import Value

_MADE = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "new_zeros", "new_ones", "new_empty", "new_full"}
)
_FINDING = frozenset({"call:max", "call:amax", "call:min", "call:amin", "call:sum", "call:count_nonzero"})
_OF_A_SEQUENCE = frozenset({"max", "min", "sum"})
_COMPUTING = frozenset(
    {"int", "+", "-", "*", "//", "max", "min", "call:item", "call:tolist", "call:long", "call:int"}
)


def cut_to_own_length(value: Value) -> bool:
    """Whether a tensor is cut, or made, to a length that this rank finds in its own data."""
    if value.tag != "expr":
        return False
    operator, operands = value.data
    if operator == "slice":
        return any(_found(bound) for bound in operands[1:3])
    if operator == "getitem":
        indices = operands[1].data if operands[1].tag == "tuple" else (operands[1],)
        cuts = [one for one in indices if one.tag == "expr" and one.data[0] == "Slice"]
        return any(_found(bound) for cut in cuts for bound in cut.data[1])
    text = str(operator)
    name = text.removeprefix("call:").rpartition(".")[2]
    if text.startswith("call:") and name in _MADE:
        sizes = operands[1:] if name.startswith("new_") else operands
        sizes = sizes[:1] if name.endswith("full") else sizes
        return any(_found(size) for one in sizes for size in (one.data if one.tag == "tuple" else (one,)))
    return False


def _found(value: Value) -> bool:
    """Whether a number is found in this rank's own data, or computed from such a number."""
    if value.tag != "expr":
        return False
    operator, operands = value.data
    if operator in _FINDING or (operator in _OF_A_SEQUENCE and len(operands) == 1):
        return any(t.kind in ("data", "random", "rank") and t.certainty != "possible" for t in value.taint)
    return operator in _COMPUTING and any(_found(operand) for operand in operands)
