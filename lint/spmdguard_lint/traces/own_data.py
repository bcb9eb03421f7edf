"""What ranks join is each rank's own: who sums, averages or gathers a value expects the ranks to differ in it.

A condition that reads such a value, before the ranks have joined it, decides on each rank for itself: ``if
torch.isnan(loss): continue`` in front of ``dist.all_reduce(loss)``. Nothing else in the code need say that the value
differs. Only what asks for contents counts; shapes, types and ``is None`` are as a rule the same everywhere. A value
that ranks have joined before is another one, and one that a loop carries from round to round may have been joined at
the end of the last round.

Cost: one visit of each block, and for each condition a look for what it reads in the blocks around it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..values.value import Place, Taint, Value, alternatives, parts_of
from .nodes import Op, Tree

if TYPE_CHECKING:
    from .nodes import Branch
    from .terms import Continuation

_SEVERAL = re.compile("distributed|is_initialized|dist_avail|is_parallel|is_dist|world_size")
_HELD = frozenset({"sym", "expr", "ite"})
# calls and operators through which a condition asks for what a tensor or a number holds, by their last names
_COMPARED = frozenset({">", "<", ">=", "<=", "==", "!="})
_LOGICAL = frozenset({"not", "and", "or", "bool", "logical_not", "logical_and", "logical_or"})
_CHANGED = frozenset(
    {"+", "-", "*", "/", "//", "neg", "abs", "sqrt", "log", "exp", "sum", "mean", "max", "min"}
    | {"amax", "amin", "norm", "float", "int", "item", "tolist", "detach", "clone", "cpu", "numpy"}
    | {"double", "half", "square", "view", "reshape", "flatten", "squeeze", "getitem", "round"}
    | {"pow", "**", "nan_to_num", "vector_norm"}
)
_ASKED = frozenset(
    {"isnan", "isinf", "isfinite", "any", "all", "isclose", "allclose", "equal", "eq", "ne", "gt"}
    | {"lt", "ge", "le", "count_nonzero", "is_nonzero", "isposinf", "isneginf", "isreal"}
)
_READ = _COMPARED | _LOGICAL | _CHANGED | _ASKED
# what says how large a tensor is
_FORM = frozenset({"attr:shape", "size", "numel", "nelement", "dim", "attr:ndim", "shape"})
# what keeps a value the number that it was
_KEPT = frozenset(
    {"detach", "clone", "cpu", "cuda", "to", "float", "int", "double", "half", "contiguous"}
    | {"item", "squeeze", "unsqueeze", "view", "reshape", "flatten", "neg", "numpy", "type_as"}
    | {"to_local"}
)
_MAKING = frozenset(
    {"tensor", "as_tensor", "FloatTensor", "LongTensor", "IntTensor", "DoubleTensor", "array"}
)


class _Use(NamedTuple):
    """A value that an operation joins: where in a block it stands, from the outside in, and what the call says."""

    path: tuple[int, ...]
    place: Place
    text: str


class Joined:
    """What the nodes of a block join, by the keys of the values; ``known`` has that of each block inside.

    Only positions are kept, so that blocks inside one another to any depth are not read again at each level.
    """

    def __init__(self, nodes: Tree, known: dict[int, Joined]) -> None:
        self.nodes = nodes  # kept, since blocks are known by their identity
        self.position: dict[int, int] = {}
        self.holder: dict[int, int] = {}
        self._known = known
        self._all: dict[Hashable, list[int]] = {}
        self._numbers: dict[Hashable, list[int]] = {}
        for position, node in enumerate(nodes):
            self.position.setdefault(id(node), position)
            parts = node.own if isinstance(node, Op) else ()
            keys = dict.fromkeys(part for part, _, _, _ in parts)
            numbers = dict.fromkeys(part for part, is_number, _, _ in parts if is_number)
            for tree in node.subtrees():
                self.holder.setdefault(id(tree), position)
                keys.update(dict.fromkeys(known[id(tree)]._all))
                numbers.update(dict.fromkeys(known[id(tree)]._numbers))
            for found, kept in ((keys, self._all), (numbers, self._numbers)):
                for key in found:
                    kept.setdefault(key, []).append(position)

    @property
    def has_uses(self) -> bool:
        """Whether anything that is a rank's own is joined here."""
        return bool(self._all)

    def behind(self, key: Hashable, start: int, asked: bool) -> _Use | None:
        """The first use of a value at ``start`` or behind, of a number only unless ``asked``."""
        block, path = self, list[int]()
        while True:
            positions = block._positions(key, asked)
            first = bisect_left(positions, start)
            if first == len(positions):
                return None
            position, start = positions[first], 0
            node = block.nodes[position]
            for number, (part, is_number, place, text) in enumerate(node.own if isinstance(node, Op) else ()):
                if part == key and (asked or is_number):
                    return _Use((*path, position, 0, number), place, text)
            inside = (self._known[id(tree)] for tree in node.subtrees())
            number, block = next((n, one) for n, one in enumerate(inside, 1) if one._positions(key, asked))
            path += (position, number)

    def _positions(self, key: Hashable, asked: bool) -> list[int]:
        return (self._all if asked else self._numbers).get(key, [])


def joined_parts(value: Value, *, number: bool = False) -> Iterator[tuple[Hashable, bool]]:
    """Keys of the values that are joined where ``value`` is, with whether each is a number made into a tensor."""
    if value.tag == "tuple":
        for item in value.data:
            yield from joined_parts(item, number=number)
    elif value.tag in _HELD and not any(map(_is_joined_before, alternatives(value))):
        yield value.key, number
        label = value.data[0]
        if number and value.tag == "sym" and isinstance(label, tuple) and label[0] == "contents":
            yield from ((key, True) for _, key in label[-1])
        name = _last_name(value)
        if name in _KEPT or name in _MAKING or name == "/":
            for part in value.data[1][:1]:
                yield from joined_parts(part, number=number or name in _MAKING)


def own_data(
    node: Branch,
    around: list[tuple[Tree, Continuation]],
    known: dict[Hashable, dict[Hashable, bool]],
    joined: dict[int, Joined],
) -> tuple[Taint, ...]:
    """Why a condition that seems to be the same everywhere is not: it reads what its ranks go on to join."""
    key = node.condition.key
    if key not in known:
        known[key] = dict(_read(node.condition, False))
    read = known[key]
    if not read or (around and not _joined(around[0][0], joined).has_uses) or _is_alone(node.condition):
        return ()
    for nodes, start in _ahead(node, around, joined):
        uses = [use for part, asked in read.items() if (use := nodes.behind(part, start, asked)) is not None]
        if uses:
            first = min(uses)
            return (Taint("data", first.place, first.text, "likely"),)
    return ()


def _is_alone(condition: Value) -> bool:
    """Whether a condition holds only where one process is alone: ``count == 0 and not is_parallel(group)``."""
    if condition.tag != "expr" or condition.data[0] != "and":
        return False
    return any(
        part.tag == "expr" and part.data[0] in ("not", "==", "<", "<=") and any(map(_is_size, parts_of(part)))
        for part in condition.data[1]
    )


def _is_size(value: Value) -> bool:
    """Whether a value says how many processes there are, or whether there are several."""
    return value.tag == "expr" and (value.data[0] == "group-size" or bool(_SEVERAL.search(value.data[0])))


def _read(value: Value, asked: bool) -> Iterator[tuple[Hashable, bool]]:
    """Keys of the values that a condition reads, with whether it asks for more than their truth."""
    if value.tag not in _HELD or any(_is_form(one) or _is_joined_before(one) for one in alternatives(value)):
        return
    yield value.key, asked
    name = _last_name(value)
    if name in _READ:
        asked = asked or name not in _LOGICAL
        for part in value.data[1]:
            yield from _read(part, asked)


def _is_form(value: Value) -> bool:
    """Whether a value says how large a tensor is."""
    name = _last_name(value)
    return name in _FORM or (name == "getitem" and _last_name(value.data[1][0]) in _FORM)


def asks_for_contents(value: Value) -> bool:
    """Whether an expression is computed of, or asks for, what its operands hold; not of how large they are."""
    return _last_name(value) in _READ and not _is_form(value)


def _last_name(value: Value) -> str:
    """The last name of the operator of an expression."""
    if value.tag != "expr":
        return ""
    name: str = value.data[0].removeprefix("call:").rpartition(".")[2]
    return name


def _is_joined_before(value: Value) -> bool:
    """Whether a value is what a call wrote, what a loop carries from one round to the next, or the round's number."""
    label = value.data[0] if value.tag == "sym" else None
    first = label[0] if isinstance(label, tuple) and label else None
    return first in ("filled", "index") or isinstance(first, Place)


def _ahead(
    node: Branch, around: list[tuple[Tree, Continuation]], joined: dict[int, Joined]
) -> Iterator[tuple[Joined, int]]:
    """The blocks around a branch from the inside out, each with the position from which on its nodes count."""
    blocks = [tree for tree, _ in reversed(around)]
    block = _joined(blocks[0], joined) if blocks else None
    if block is None or id(node) not in block.position:
        yield _joined([node], joined), 0
        return
    yield block, block.position[id(node)]
    for inner, outer in pairwise(blocks):
        block = _joined(outer, joined)
        if id(inner) not in block.holder:
            return
        yield block, block.holder[id(inner)] + 1


def _joined(tree: Tree, known: dict[int, Joined]) -> Joined:
    """What a block joins; the blocks inside first."""
    pending = [] if id(tree) in known else [(tree, False)]
    while pending:
        one, inside_is_known = pending.pop()
        if id(one) in known:
            continue
        if inside_is_known:
            known[id(one)] = Joined(one, known)
        else:
            pending.append((one, True))
            pending.extend((inner, False) for node in one for inner in node.subtrees())
    return known[id(tree)]
