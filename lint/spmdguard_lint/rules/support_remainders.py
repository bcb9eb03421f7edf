"""The last of the pieces in which one rank goes through its data: it may be smaller than the buffers for all of them.

Terminology: an *item* is an element of what is iterated over, or a slice ``data[i : i + size]``. Items come *in
groups of* a size where a loop around runs ``ceil(n / size)`` times, in steps of it, or over ``data.split(size)`` or a
loader of that batch size which does not drop the last batch.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..traces.nodes import Loop
from ..values.evaluate import rank_dependent
from ..values.value import Value, called, is_const, parts_of
from .support_shapes import MADE, shaped
from .support_trees import Path

_SPLITTING = frozenset({"split", "DataLoader", "batched", "iter_batches"})


def smaller_at_the_end(value: Value, path: Path) -> bool:
    """Whether some ranks hand an item and the others a buffer of the full size, which the last item may not have."""
    if value.tag != "ite" or not rank_dependent(value.data[0]):
        return False
    arms = [shaped(arm) for arm in value.data[1:]]
    for item, buffer in (arms, arms[::-1]):
        size = _rows(buffer)
        if size is None or not _is_item(item):
            continue
        if _cut(item, size):
            return not any(_divides(node.iterated) for node, _ in path if isinstance(node, Loop))
        if any(_in_groups(node.iterated, size) for node, _ in path if isinstance(node, Loop)):
            return True
    return False


def _rows(buffer: Value) -> Hashable:
    """The key of the first dimension of a new tensor of several."""
    if buffer.tag != "expr" or called(buffer.data[0]) not in MADE or not buffer.data[1]:
        return None
    first = buffer.data[1][0]
    if first.tag == "tuple" and first.data:
        first = first.data[0]
    return None if is_const(first) and first.data[0] in (0, 1) else first.key


def _is_item(value: Value) -> bool:
    if value.tag == "sym":
        return isinstance(value.data[0], tuple) and value.data[0][:1] == ("element",)
    return value.tag == "expr" and value.data[0] == "slice"


def _cut(item: Value, size: Hashable) -> bool:
    """``data[i : i + size]``."""
    if item.tag != "expr" or len(item.data[1]) < 3:
        return False
    lower, upper = item.data[1][1:3]
    if is_const(lower) or upper.tag != "expr" or upper.data[0] != "+":
        return False
    return {operand.key for operand in upper.data[1]} == {lower.key, size}


def _in_groups(iterated: Value | None, size: Hashable) -> bool:
    """Whether a loop goes through groups of a size, the last of which may be smaller."""
    if iterated is None or not any(part.key == size for part in parts_of(iterated)):
        return False
    if any(_is_named(part, _SPLITTING) for part in parts_of(iterated)):
        return True
    return any(_rounds_up(part, size) for part in parts_of(iterated))


def _rounds_up(value: Value, size: Hashable) -> bool:
    """``ceil(n / size)``, ``(n + size - 1) // size``, ``-(-n // size)``, ``range(0, n, size)``."""
    if value.tag != "expr":
        return False
    name, operands = value.data
    if name == "range":
        return len(operands) == 3 and operands[2].key == size and not _divides(value)
    if called(name) == "ceil":
        return bool(operands) and _over(operands[0], ("/",), size)
    if name == "neg":
        return _over(operands[0], ("//",), size)
    return _over(value, ("//",), size) and any(part.key == size for part in parts_of(operands[0]))


def _over(value: Value, operators: tuple[str, ...], size: Hashable) -> bool:
    return value.tag == "expr" and value.data[0] in operators and value.data[1][1].key == size


def _divides(iterated: Value | None) -> bool:
    """Whether what is left over is taken off: ``range(0, n - n % size, size)``."""
    return iterated is not None and any(
        part.tag == "expr" and part.data[0] in ("%", "//") for part in parts_of(iterated)
    )


def _is_named(value: Value, names: frozenset[str]) -> bool:
    dropped = value.tag == "expr" and any(is_const(part) and part.data[0] is True for part in value.data[1])
    return value.tag == "expr" and called(value.data[0]) in names and not dropped
