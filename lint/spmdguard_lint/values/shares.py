"""Whether what each rank takes of something is as long on every rank.

Terminology: a *share* is ``items[lower:upper:step]`` or ``range(lower, upper, step)`` whose bounds depend on the rank.
Method: every part of the bounds that is opaque but rank-invariant gets a number, the same on all ranks (what something
is divided by: the number of ranks); the share's length is then computed for every rank of small worlds, for several
choices of numbers. Equal lengths throughout mean an even share: ``range(rank, n - n % world, world)``, or
``items[rank * k : (rank + 1) * k]`` with ``k = n // world``. One difference is a counter-example, as for
``k = ceil(n / world)``, whose last rank gets less.
Cost: a few hundred evaluations of small expressions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from .evaluate import UNKNOWN, Valuation, evaluate, holds_rank, is_computed
from .value import NONE, Value, expression, is_const, parts_of

PIECES = frozenset(
    {"chunk", "tensor_split", "array_split"}
)  # that cut something into as many pieces as asked for
_WORLDS = (3, 4)
_NUMBERS = (1009, 2, 1511, 7, 1730, 3, 1951, 5)
_ENDLESS = 10**9


def uncut(value: Value) -> Value:
    """What was there before a value's slices were taken: ``items`` of ``items[:usable][2:]``."""
    cut = _slice_of(value)
    return value if cut is None else uncut(cut[0])


def is_even_share(
    lower: Value, upper: Value, step: Value, of: Value | None = None, length: Value | None = None
) -> bool:
    """Whether all ranks get as many items of ``of``, or as many numbers of a ``range`` where ``of`` is None.

    ``length`` is that of ``uncut(of)``, where more is known of it than ``len(...)``.
    """
    bounds = (lower, upper, step)
    leaves: set[Hashable] = set()
    own = frozenset(part.key for bound in bounds for part in parts_of(bound) if _is_rank_of_a_group(part))
    sizes = frozenset(_divisors(bounds)) | ({step.key} if is_stride(lower, step) else frozenset())
    if not all(_collect(bound, leaves) for bound in bounds):
        return False
    if of is not None and length is None:
        length = expression("len", (uncut(of),))
    endless = (
        of is not None
        and length is not None
        and not is_const(length)
        and upper.key != NONE.key
        and length.key not in leaves
        and _slice_of(of) is None
    )
    if of is not None and not endless and not _collect_length(of, length, leaves):
        return False
    ordered = sorted(leaves, key=repr)
    for shift in range(len(_NUMBERS)):
        atoms = {leaf: _NUMBERS[(index + shift) % len(_NUMBERS)] for index, leaf in enumerate(ordered)}
        if endless and length is not None:  # nothing relates the bounds to it: they are taken to lie within
            atoms[length.key] = _ENDLESS
        for world in _WORLDS:
            atoms.update(dict.fromkeys(sizes, world))
            lengths = {
                _length(bounds, of, length, Valuation(rank, world, 2, {**atoms, **dict.fromkeys(own, rank)}))
                for rank in range(world)
            }
            if len(lengths) != 1 or None in lengths:
                return False
    return True


def is_stride(lower: Value, step: Value) -> bool:
    """Whether a share begins at the rank and goes on by a number that has a name: ``[rank::world]``."""
    return lower.tag == "rank" and step.tag in ("sym", "world")


def _divisors(bounds: tuple[Value, ...]) -> Iterator[Hashable]:
    """What bounds are divided by and has a name: the number of ranks, whose own numbers are below it."""
    for part in (part for bound in bounds for part in parts_of(bound)):
        if part.tag == "expr" and part.data[0] in ("//", "%", "/"):
            divided, by = part.data[1]
            if by.tag == "sym" and not holds_rank(divided) and not _is_rank_of_a_group(divided):
                yield by.key


def _is_rank_of_a_group(value: Value) -> bool:
    """Whether a value is the rank along one dimension of the mesh: ``pp_rank``."""
    label = value.data[0] if value.tag == "sym" else None
    return isinstance(label, tuple) and label[:1] == ("group-rank",)


def _collect(value: Value, leaves: set[Hashable]) -> bool:
    """Add the opaque parts of a bound; False where one of them differs between ranks in a way that is not known."""
    if value.tag in ("const", "rank", "world", "local_rank", "node_rank") or _is_rank_of_a_group(value):
        return True
    if value.tag == "expr" and is_computed(value.data[0]):
        return all(_collect(operand, leaves) for operand in value.data[1])
    if value.tag == "ite":
        return all(_collect(part, leaves) for part in value.data)
    leaves.add(value.key)
    return all(taint.certainty == "possible" for taint in value.taint)


def _collect_length(of: Value, length: Value | None, leaves: set[Hashable]) -> bool:
    pieces = _pieces_of(of)
    if pieces is not None:
        return _collect(pieces, leaves)
    cut = _slice_of(of)
    if cut is not None:
        return all(_collect(bound, leaves) for bound in cut[1:]) and _collect_length(cut[0], length, leaves)
    if length is not None and not is_const(length):
        leaves.add(length.key)
    return True


def _pieces_of(value: Value) -> Value | None:
    """Into how many pieces a value has been cut: ``x.tensor_split(n)`` gives as many as asked for."""
    if value.tag == "expr" and value.data[0].rpartition(".")[2].removeprefix("call:") in PIECES:
        operands: tuple[Value, ...] = value.data[1]
        return operands[1] if len(operands) > 1 else None
    return None


def _slice_of(value: Value) -> tuple[Value, ...] | None:
    if value.tag == "expr" and value.data[0] == "slice" and len(value.data[1]) == 4:
        operands: tuple[Value, ...] = value.data[1]
        return operands
    return None


def _length(bounds: tuple[Value, ...], of: Value | None, length: Value | None, at: Valuation) -> int | None:
    numbers = [None if bound.key == NONE.key else evaluate(bound, at) for bound in bounds]
    if any(number is not None and not _is_whole(number) for number in numbers):
        return None
    start, stop, step = numbers
    if step == 0:
        return None
    if of is None:
        return len(range(start or 0, stop if stop is not None else 0, step or 1))
    size = _size(of, length, at)
    if size is None:
        return None
    if size >= _ENDLESS and (stop is None or start is None or start < 0 or stop < 0):
        return None
    return len(range(*slice(start, stop, step).indices(size)))


def _size(of: Value, length: Value | None, at: Valuation) -> int | None:
    pieces = _pieces_of(of)
    if pieces is not None:
        number = evaluate(pieces, at)
        return number if _is_whole(number) else None
    cut = _slice_of(of)
    if cut is not None:
        return _length(cut[1:], cut[0], length, at)
    known = None if length is None else length.data[0] if is_const(length) else at.atoms.get(length.key)
    return None if known is None else int(known)


def _is_whole(number: Any) -> bool:
    return number is not UNKNOWN and isinstance(number, int)
