"""Operations under way: which of them a rank has begun and not waited for, at each use of their buffers.

Terminology: an operation is *under way* from its start to a wait on its handle. A use is *too early* on a rank where
every path that leads there, in one round of the loops around, has the operation under way. A wait on something
unknown, and a wait for the device, is taken to end them all, and a call of unknown code that gets a handle to end that
one.

Cost: one walk of a root's tree for each rank of a small world, for roots that begin an operation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.nodes import (
    Branch,
    Call,
    Event,
    Fallible,
    Jump,
    Loop,
    Node,
    Op,
    Region,
    Tree,
    Try,
    Yielded,
    every_node,
)
from ..traces.sequence import Walk
from ..traces.where import Where, calls_of
from .support_messages import handles

if TYPE_CHECKING:
    from ..analysis import Root
    from ..traces.paths import Flow, Paths
    from ..values.value import Place

WORLD = 4
_USES = frozenset({"buffer-read", "buffer-written"})
Begun = frozenset["Place"]
_Key = tuple[int, "Place", tuple[int, ...]]


class Use(NamedTuple):
    """A use of a buffer, the operation that is under way on it, and on which ranks."""

    event: Event
    op: Op
    ranks: tuple[int, ...]
    calls: tuple[Call, ...]


class Left(NamedTuple):
    """A wait that some ranks make, the operation that others never wait for, and one rank of each kind."""

    event: Event
    op: Op
    waits: int
    never: int
    calls: tuple[Call, ...]


class Flight(Walk):
    """Follows one rank: the operations under way at each use, and at the end."""

    def __init__(self, begun: dict[Place, Op], rank: int) -> None:
        super().__init__(rank=rank, world=WORLD)
        self.begun = begun
        self.seen: dict[_Key, tuple[Event, tuple[Call, ...], dict[int, list[bool]]]] = {}
        self.round = 0
        self.waits: dict[Place, tuple[Event, tuple[Call, ...]]] = {}
        self.started: set[Place] = set()

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        """The operations under way after a node."""
        under_way: Begun = state  # type: ignore[assignment]
        if isinstance(node, Op) and node.place in self.begun:
            self.started.add(node.place)
            return under_way | {node.place}
        if isinstance(node, Fallible):
            return frozenset() if ".wait" in node.text or "synchronize(" in node.text else under_way
        if not isinstance(node, Event):
            return under_way
        if node.name == "handle-given" and node.receiver is not None:
            return under_way - set(handles(node.receiver))
        if node.name == "wait" and node.receiver is not None:
            places = set(handles(node.receiver))
            for place in places:
                self.waits.setdefault(place, (node, calls_of(where)))
            return under_way - places if places else frozenset()
        if node.name == "device-sync":
            return frozenset()
        if node.name in _USES:
            self._use(node, under_way, calls_of(where))
        return under_way

    def _node(self, node: Node, paths: Paths, where: Where | None) -> Flow:
        self.round += isinstance(node, Event)  # the paths that come to it together
        return super()._node(node, paths, where)

    def _use(self, event: Event, under_way: Begun, calls: tuple[Call, ...]) -> None:
        for place in event.args[0].data:
            if place in self.begun:
                key = (id(event), place, tuple(id(call) for call in calls))
                rounds = self.seen.setdefault(key, (event, calls, {}))[2]
                rounds.setdefault(self.round, []).append(place in under_way)


def begun_in(root: Root) -> dict[Place, Op]:
    """The operations that a root begins, by their places."""
    return {n.place: n for n in every_node(root.tree) if isinstance(n, Op) and n.begins}


def follow(root: Root, begun: dict[Place, Op]) -> tuple[list[Use], list[Left]]:
    """Uses that come too early, and waits that not every rank makes."""
    flights = [Flight(begun, rank) for rank in range(WORLD)]
    ends = [_ends(flight, root.tree) for flight in flights]
    escaping = _returned(root.tree)
    left = [] if escaping is None else list(_left(flights, ends, begun, escaping))
    return list(_early(flights, begun)), left


def _ends(flight: Flight, tree: Tree) -> list[Begun]:
    flow = flight.run(tree, frozenset())
    return [path.state for kind in ("fall", "ret") for path in flow.get(kind, ())]  # type: ignore[misc]


def _early(flights: list[Flight], begun: dict[Place, Op]) -> Iterator[Use]:
    ranks: dict[_Key, list[int]] = {}
    for rank, flight in enumerate(flights):
        for key, (_, _, rounds) in flight.seen.items():
            if any(all(early) for early in rounds.values()):
                ranks.setdefault(key, []).append(rank)
    for key, on in ranks.items():
        event, calls, _ = flights[on[0]].seen[key]
        yield Use(event, begun[key[1]], tuple(on), calls)


def _left(
    flights: list[Flight], ends: list[list[Begun]], begun: dict[Place, Op], escaping: set[Place]
) -> Iterator[Left]:
    for place, op in begun.items():
        waiting = [
            rank
            for rank, states in enumerate(ends)
            if place in flights[rank].waits and states and not any(place in state for state in states)
        ]
        never = [
            rank
            for rank, states in enumerate(ends)
            if place in flights[rank].started
            and place not in flights[rank].waits
            and states
            and all(place in state for state in states)
        ]
        if waiting and never and place not in escaping:
            event, calls = flights[waiting[0]].waits[place]
            yield Left(event, op, waiting[0], never[0], calls)


def _returned(tree: Tree) -> set[Place] | None:
    """The operations whose handles a root returns; None where it returns something that may hold any."""
    found: set[Place] = set()
    for jump in _own_jumps(tree):
        stack = [jump.value] if jump.kind == "return" and jump.value is not None else []
        while stack:
            value = stack.pop()
            if value.tag == "obj":
                return None
            if value.tag in ("tuple", "ite"):
                stack.extend(value.data)
            found.update(handles(value))
    return found


def _own_jumps(tree: Tree) -> Iterator[Jump]:
    """The jumps of a root itself, without those of followed calls."""
    for node in tree:
        if isinstance(node, Jump):
            yield node
        for child in _inside(node):
            yield from _own_jumps(child)


def _inside(node: Node) -> list[Tree]:
    if isinstance(node, Branch):
        return [node.then, node.orelse]
    if isinstance(node, (Loop, Yielded, Region)):
        return [node.body]
    if isinstance(node, Try):
        return [node.body, *(h.body for h in node.handlers), node.orelse, node.final]
    return []
