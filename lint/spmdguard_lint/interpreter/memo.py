"""Remembered calls: a function called again with the same arguments leaves the same trace.

A call is remembered by function, receiver and arguments (their keys and taints) and reused while the objects
among them have the fields they had. A call that changed an object which existed before is not remembered, but for
the new object that it initialises: objects of one class made of the same arguments are alike, wherever they are made.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from ..traces.nodes import Node, Tree
from ..values.value import Value

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from .frame import Raised
    from .heap import Fields, Heap
    from .state import State

MAX_CALLS = 20_000


class Remembered:
    """One call: its nodes, its result, what it raised, the arguments it wrote into, the object that it initialised.

    ``seen`` is what it found in the heap, ``made`` what it left there. ``cut`` says that not all of it was followed,
    ``effort`` what following it again would spend. ``hooks`` are those around it, where what it does depends on them.
    """

    __slots__ = ("cut", "effort", "hooks", "made", "nodes", "own", "raised", "seen", "value", "written")

    def __init__(
        self,
        nodes: Tree,
        value: Value,
        raised: Sequence[Raised],
        written: Sequence[tuple[int, Value]],
        own: Value | None,
    ) -> None:
        self.nodes = nodes
        self.value = value
        self.raised = raised
        self.written = written
        self.own = own
        self.seen: tuple[tuple[Hashable, Fields | None], ...] = ()
        self.made: dict[Hashable, Fields] = {}
        self.cut = False
        self.effort = 0
        self.hooks: frozenset[str] | None = None

    def objects_for(self, values: list[Value]) -> dict[Hashable, Fields]:
        """The objects that the call makes where it gets these values: the new object is another one each time."""
        own = self.own
        if own is None or own.data[0] == values[0].data[0]:
            return self.made
        objects: dict[Hashable, Fields] = {}
        for object_id, fields in self.made.items():
            if any(value.key == own.key for value in fields.values()):
                fields = {name: values[0] if v.key == own.key else v for name, v in fields.items()}
            objects[values[0].data[0] if object_id == own.data[0] else object_id] = fields
        return objects


class CallMemo:
    """All remembered calls of a run."""

    def __init__(self) -> None:
        self.calls: dict[Hashable, Remembered] = {}
        self.cells: set[Hashable] = set()  # the heap objects that tell which results are kept
        self.shared: set[Hashable] = set()  # objects behind module-level names that functions change
        self.sizes: dict[int, tuple[Tree, int]] = {}

    def key(
        self,
        info: FunctionInfo,
        made: Value | None,
        receiver: Value | None,
        args: list[Value],
        kwargs: dict[str, Value],
        depth: int,
        spread: bool,
    ) -> Hashable:
        """What identifies a call; None where an argument is only known in its own frame.

        The object ``made`` that it initialises is the receiver, and stands for any other of its class.
        """
        values = [*([receiver] if receiver is not None else []), *args, *kwargs.values()]
        if any(v.tag in ("func", "wrapped", "partial", "generator", "manager") for v in values):
            return None
        if made is not None:
            del values[0]
        parts = tuple((v.key, v.taint, v.trip) for v in values)
        return (id(info), made is not None, receiver is None, len(args), tuple(kwargs), parts, depth, spread)

    def find(self, key: Hashable, state: State, room: int, hooks: frozenset[str]) -> Remembered | None:
        """A remembered call that still holds in a state; one that was cut short only where as much room is left."""
        known = self.calls.get(key) or self.calls.get((key, room))
        if known is None or (known.hooks is not None and known.hooks != hooks):
            return None
        if any(state.heap.get(object_id) is not fields for object_id, fields in known.seen):
            return None
        return known

    def remember(
        self,
        key: Hashable,
        done: Remembered,
        values: list[Value],
        before: Heap,
        after: Heap,
        room: int,
    ) -> None:
        """Keep a finished call, unless it changed what existed before it."""
        if len(self.calls) >= MAX_CALLS:
            self.calls.clear()
            self.sizes.clear()
        own_id = done.own.data[0] if done.own is not None else None
        for one in done.raised:
            if any(object_id != own_id for object_id, _ in one.state.heap.differing(before)):
                return
        for object_id, fields in before.differing(after):
            if object_id in before and object_id != own_id:
                return
            done.made[object_id] = fields
        if done.own is not None and _is_held(done.own, done.nodes, done.made):
            return
        objects = (v.data[0] for v in values if v.tag == "obj" and v.data[0] != own_id)
        done.seen = tuple(
            (object_id, before.get(object_id)) for object_id in (*objects, *self.cells, *self.shared)
        )
        self.calls[(key, room) if done.cut else key] = done

    def size(self, nodes: Tree) -> int:
        """How many nodes a tree has when shared calls are counted at every site."""
        known = self.sizes.get(id(nodes))
        if known is None:
            total = len(nodes)
            for node in nodes:
                for child in node.subtrees():
                    total += self.size(child)
            known = self.sizes[id(nodes)] = (nodes, total)
        return known[1]


def _is_held(own: Value, nodes: Tree, made: dict[Hashable, Fields]) -> bool:
    """Whether a new object is part of other values, or an operation uses it: then it is not exchanged for another.

    What is computed from it (a condition, an expression) is the same for every object made in the same way.
    """
    seen: set[int] = set()
    stack: list[object] = [nodes]
    for fields in made.values():
        stack.extend(value for value in fields.values() if value.key != own.key)
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            stack.extend(part.values())
        elif isinstance(part, (tuple, list)):
            stack.extend(part)
        elif isinstance(part, (Value, Node)) and id(part) not in seen:
            seen.add(id(part))
            if isinstance(part, Node):
                stack.extend(getattr(part, name) for name in _PARTS[type(part)])
            elif part.key == own.key:
                return True
            elif part.tag != "expr":
                stack.append(part.data[1:] if part.tag == "ite" else part.data)
    return False


class _Parts(dict[type[Node], tuple[str, ...]]):
    """The attributes of each kind of node, without its condition."""

    def __missing__(self, kind: type[Node]) -> tuple[str, ...]:
        names = (name for cls in kind.__mro__ for name in getattr(cls, "__slots__", ()))
        parts = self[kind] = tuple(name for name in names if name != "condition")
        return parts


_PARTS = _Parts()
