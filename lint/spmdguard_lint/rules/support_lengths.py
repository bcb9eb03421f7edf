"""Lengths that a rank finds in its own data: the longest of its samples, or how many elements count.

Terminology: a number is *found in data* when it is the greatest, the least or the sum of values of this rank's own
batch (``int(valid.max())``, ``mask.sum(1).max().item()``, ``max(len(text) for text in batch)``), or is computed from
such a number. A tensor that is cut or made to such a length has another size on each rank. What was reduced over the
ranks before has lost the reason, and so has what is padded to a number from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interpreter.operands import is_generated
from ..values.value import alternatives

if TYPE_CHECKING:
    from ..traces.nodes import Op
    from ..values.value import Value

_MADE = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "new_zeros", "new_ones", "new_empty", "new_full"}
)
_FINDING = frozenset({"call:max", "call:amax", "call:min", "call:amin", "call:sum", "call:count_nonzero"})
_OF_A_SEQUENCE = frozenset({"max", "min", "sum"})
_OWN = frozenset({"rank", "group-rank", "data", "random"})
_SIZES = frozenset({"attr:shape", "call:size", "call:numel", "len"})
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


def generated(value: Value) -> bool:
    """Whether a tensor is what a model has generated, or columns of it: as wide as this rank's longest answer."""
    while value.tag == "expr" and value.data[0] in ("slice", "getitem") and value.data[1]:
        value = value.data[1][0]
    return is_generated(value)


def sized_by_itself(op: Op, value: Value) -> bool:
    """Whether ranks that receive a broadcast size their buffer like their own share, which they would send in turn."""
    if op.name != "broadcast" or op.root is None or value.tag != "ite":
        return False
    condition, then, orelse = value.data
    if condition.tag != "expr" or condition.data[0] not in ("==", "!="):
        return False
    if op.root.key not in (operand.key for operand in condition.data[1]):
        return False
    sent, buffer = (then, orelse) if condition.data[0] == "==" else (orelse, then)
    own = any(
        t.kind in _OWN and t.certainty != "possible" for one in alternatives(sent) for t in one.trip or ()
    )
    return own and _is_like(buffer, sent)


def _is_like(buffer: Value, sent: Value) -> bool:
    """``empty_like(sent)``, ``sent.new_empty(sent.shape)``, ``torch.empty(sent.numel())``."""
    if buffer.tag != "expr":
        return False
    name = str(buffer.data[0]).removeprefix("call:").rpartition(".")[2]
    if name.endswith("_like"):
        return bool(buffer.data[1]) and buffer.data[1][0].key == sent.key
    sizes = buffer.data[1][1:] if name.startswith("new_") else buffer.data[1]
    return name in _MADE and any(_size_of(part, sent) for size in sizes for part in _parts(size))


def _parts(size: Value) -> tuple[Value, ...]:
    return size.data if size.tag == "tuple" else (size,)


def _size_of(size: Value, tensor: Value) -> bool:
    while size.tag == "expr" and size.data[0] == "getitem":
        size = size.data[1][0]
    return size.tag == "expr" and size.data[0] in _SIZES and size.data[1][0].key == tensor.key


def _found(value: Value) -> bool:
    """Whether a number is found in this rank's own data, or computed from such a number."""
    if value.tag != "expr":
        return False
    operator, operands = value.data
    if operator in _FINDING or (operator in _OF_A_SEQUENCE and len(operands) == 1):
        return any(t.kind in ("data", "random", "rank") and t.certainty != "possible" for t in value.taint)
    return operator in _COMPUTING and any(_found(operand) for operand in operands)
