"""Remembered calls: a function called again with the same arguments leaves the same trace.

A call is remembered by function, receiver and arguments (their keys and taints) and reused while the objects
among them have the fields they had. A call that changed an object which existed before is not remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from ..traces.nodes import Tree
from ..traces.terms import subtrees
from ..values.value import Value
from .state import differing

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from .frame import Raised
    from .state import Fields, State

MAX_CALLS = 20_000


class Remembered:
    """One call: what it saw of the heap, its nodes, its result, the objects it made, the arguments it wrote into."""

    __slots__ = ("made", "nodes", "raised", "seen", "size", "value", "written")

    def __init__(
        self,
        seen: tuple[tuple[Hashable, Fields | None], ...],
        nodes: Tree,
        value: Value,
        made: dict[Hashable, Fields],
        size: int,
        raised: Sequence[Raised] = (),
        written: Sequence[tuple[int, Value]] = (),
    ) -> None:
        self.written = written
        self.seen = seen
        self.nodes = nodes
        self.value = value
        self.made = made
        self.size = size
        self.raised = raised


class CallMemo:
    """All remembered calls of a run."""

    def __init__(self) -> None:
        self.calls: dict[Hashable, Remembered] = {}
        self.sizes: dict[int, tuple[Tree, int]] = {}

    def key(
        self,
        info: FunctionInfo,
        receiver: Value | None,
        args: list[Value],
        kwargs: dict[str, Value],
        depth: int,
    ) -> Hashable:
        """What identifies a call; None where an argument is only known in its own frame."""
        values = [*([receiver] if receiver is not None else []), *args, *kwargs.values()]
        if any(v.tag in ("func", "wrapped", "partial", "generator", "manager") for v in values):
            return None
        parts = tuple((v.key, v.taint, v.trip) for v in values)
        return (id(info), receiver is None, len(args), tuple(kwargs), parts, depth)

    def find(self, key: Hashable, state: State) -> Remembered | None:
        """A remembered call that still holds in a state."""
        known = self.calls.get(key)
        if known is None:
            return None
        if any(state.heap.get(object_id) is not fields for object_id, fields in known.seen):
            return None
        return known

    def remember(
        self,
        key: Hashable,
        values: list[Value],
        before: dict[Hashable, Fields],
        after: dict[Hashable, Fields],
        nodes: Tree,
        value: Value,
        raised: Sequence[Raised] = (),
        written: Sequence[tuple[int, Value]] = (),
    ) -> None:
        """Keep a finished call, unless it changed what existed before it."""
        if len(self.calls) >= MAX_CALLS:
            self.calls.clear()
            self.sizes.clear()
        for one in raised:
            heap = one.state.heap
            if any(heap.get(object_id) is not fields for object_id, fields in before.items()):
                return
        made: dict[Hashable, Fields] = {}
        for object_id, fields in differing(before, after):
            if object_id in before:
                return
            made[object_id] = fields
        seen = tuple((v.data[0], before.get(v.data[0])) for v in values if v.tag == "obj")
        self.calls[key] = Remembered(seen, nodes, value, made, self.size(nodes), raised, written)

    def size(self, nodes: Tree) -> int:
        """How many nodes a tree has when shared calls are counted at every site."""
        known = self.sizes.get(id(nodes))
        if known is None:
            total = len(nodes)
            for node in nodes:
                for child in subtrees(node):
                    total += self.size(child)
            known = self.sizes[id(nodes)] = (nodes, total)
        return known[1]
