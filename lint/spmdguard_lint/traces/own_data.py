"""What ranks join is each rank's own: who sums, averages or gathers a value expects the ranks to differ in it.

A condition that reads such a value, before the ranks have joined it, decides on each rank for itself: ``if
torch.isnan(loss): continue`` in front of ``dist.all_reduce(loss)``. Nothing else in the code need say that the value
differs. Only what asks for contents counts; shapes, types and ``is None`` are as a rule the same everywhere. A value
that ranks have joined before is another one, and one that a loop carries from round to round may have been joined at
the end of the last round.

Cost: one visit of the nodes of each block around such a condition, and for each condition a look for what it reads.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..values.value import Place, Taint, Value, alternatives, parts_of
from .nodes import Op, Tree, every_node

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
    """A value that an operation joins: the position in its block, its number, whether a number was made a tensor."""

    position: int
    number: int
    is_number: bool
    place: Place
    text: str


class Joined:
    """What the nodes of a block join, by the keys of the values, so that no block is searched for each branch."""

    def __init__(self, nodes: Tree) -> None:
        self.nodes = nodes  # kept, since blocks are known by their identity
        self.position: dict[int, int] = {}
        self.holder: dict[int, int] = {}
        self._uses: dict[Hashable, list[_Use]] = {}
        count = 0
        for position, node in enumerate(nodes):
            self.position.setdefault(id(node), position)
            for tree in node.subtrees():
                self.holder.setdefault(id(tree), position)
            for op in every_node([node]):
                for part, is_number, place, text in op.own if isinstance(op, Op) else ():
                    self._uses.setdefault(part, []).append(_Use(position, count, is_number, place, text))
                    count += 1

    @property
    def has_uses(self) -> bool:
        """Whether anything that is a rank's own is joined here."""
        return bool(self._uses)

    def behind(self, key: Hashable, start: int, asked: bool) -> _Use | None:
        """The first use of a value at ``start`` or behind, of a number only unless ``asked``."""
        uses = self._uses.get(key, [])
        first = bisect_left(uses, start, key=lambda use: use.position)
        return next((use for use in islice(uses, first, None) if asked or use.is_number), None)


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
        yield Joined([node]), 0
        return
    yield block, block.position[id(node)]
    for inner, outer in pairwise(blocks):
        block = _joined(outer, joined)
        if id(inner) not in block.holder:
            return
        yield block, block.holder[id(inner)] + 1


def _joined(tree: Tree, known: dict[int, Joined]) -> Joined:
    if id(tree) not in known:
        known[id(tree)] = Joined(tree)
    return known[id(tree)]
