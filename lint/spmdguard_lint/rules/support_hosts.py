"""Stores that live in the process of one rank: the others may still use them when that rank has ended.

Terminology: the *host* is the rank whose ``TCPStore`` is the server (``is_master``); the others are *clients*. The host
*waits* where it reads a key that it has not set itself, waits for keys, or goes round a loop that asks the store. A
program whose ranks meet in collectives is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..source.walking import walk
from ..traces.nodes import Branch, Call, Event, Fallible, Jump, Loop, Op
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.evaluate import UNKNOWN, Valuation, evaluate, truth
from ..values.value import is_at, parts_of
from .support_events import argument, reading

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..values.value import Place, Value

STORE = "torch.distributed.TCPStore"
_WORLD = 3
_SETS = frozenset({"store-set", "store-add"})
_USES = _SETS | {"store-get", "store-wait"}
_WAITS = frozenset({"thread-join", "wait"})
Key = tuple[object, ...]


class Left(NamedTuple):
    """The last use of a store by a client, where the store is made, and the host's last use of it."""

    use: Event
    made: Event
    last: Event | None


def left_behind(analysis: Analysis) -> Iterator[Left]:
    """The uses of a store that may come when its host has ended; one for each store."""
    seen: set[Place] = set()
    for root in reading(analysis):
        if root.contents.ops or not root.contents.events & _USES:
            continue
        ranks = [_Uses(rank) for rank in range(_WORLD)]
        for walk_of_rank in ranks:
            walk_of_rank.run(root.tree, "")
        hosts = [one for one in ranks if one.hosts is not None]
        if len(hosts) != 1 or hosts[0].hosts is None or hosts[0].hosts.place in seen:
            continue
        clients = [one for one in ranks if one is not hosts[0]]
        use = _late(hosts[0], clients)
        if use is not None and not _kept(root, hosts[0].hosts):
            seen.add(hosts[0].hosts.place)
            yield Left(use, hosts[0].hosts, hosts[0].uses[-1] if hosts[0].uses else None)


class _Uses(Walk):
    """What one rank does with the stores, in order; state: nothing."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank=rank, world=_WORLD, local=_WORLD)
        self.at = Valuation(rank, _WORLD, _WORLD)
        self.hosts: Event | None = None
        self.uses: list[Event] = []
        self.waited = -1  # how many uses there were at the last wait for another rank

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if not isinstance(node, Event):
            return state
        if node.call == STORE:
            asked = argument(node, 3, "is_master")
            if asked is not None and truth(asked, self.at):
                self.hosts = node
        elif node.name in _USES:
            self.uses.append(node)
            if self._waits(node) or _in_while(where):
                self.waited = len(self.uses)
        elif node.name in _WAITS or (node.name == "sleep" and _in_while(where)):
            self.waited = len(self.uses)
        return state

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        if node.form == "while" and any(taint.kind == "order" for taint in node.condition.taint):
            self.waited = len(self.uses)
        return state

    def _waits(self, node: Event) -> bool:
        """Whether a rank waits for a key that another one sets."""
        if node.name not in ("store-get", "store-wait"):
            return False
        key = self.key(node)
        return key is None or UNKNOWN in key or not any(fits(key, mine) for mine in self.keys())

    def keys(self, since: int = 0) -> Iterator[Key]:
        """The keys that the rank has set."""
        for node in self.uses[since:]:
            key = self.key(node) if node.name in _SETS else None
            if key is not None:
                yield key

    def key(self, node: Event) -> Key | None:
        """The pieces of a key on this rank, with ``UNKNOWN`` for those that are not known; None of a list."""
        given = node.args[0] if node.args else None
        if given is None or node.name == "store-wait":
            return None
        operands = given.data[1] if given.tag == "expr" and given.data[0] in ("format", "+") else (given,)
        pieces = [evaluate(operand, self.at) for operand in operands]
        if UNKNOWN not in pieces:
            return ("".join(map(str, pieces)),)
        return tuple(piece if piece is UNKNOWN else str(piece) for piece in pieces)


def fits(one: Key, other: Key) -> bool:
    """Whether two keys may be the same, where what is not known stands for anything."""
    first, second = (key[0] if key and isinstance(key[0], str) else "" for key in (one, other))
    if UNKNOWN not in one and UNKNOWN not in other:
        return one == other
    return first.startswith(second) or second.startswith(first)


def _late(host: _Uses, clients: list[_Uses]) -> Event | None:
    """The last use of a client for which the host does not wait."""
    if host.waited < 0:
        return next((client.uses[-1] for client in clients if client.uses), None)
    told = list(host.keys(host.waited))
    for client in clients:
        for node in reversed(client.uses):
            key = client.key(node) if node.name == "store-get" else None
            if key is not None and UNKNOWN not in key and any(fits(key, one) for one in told):
                return node
    return None


def _in_while(where: Where | None) -> bool:
    return any(isinstance(w.node, Loop) and w.node.form == "while" for w in around(where))


def _kept(root: Root, made: Event) -> bool:
    """Whether a store goes on to something that is not read: it is given back, kept or handed on."""
    if root.function is not None and root.function.cls is not None:
        return True
    followed = {step.node.place for step in root.steps if isinstance(step.node, Call)}
    given_back = (
        step.node.value
        for step in root.steps
        if isinstance(step.node, Jump) and step.node.kind == "return" and not step.calls
    )
    if any(_is_made_at(part, made.place) for value in given_back if value for part in parts_of(value)):
        return True
    module = root.module.project.by_filename.get(made.place.filename)
    around = _function_at(module.tree, made.place) if module is not None else None
    if around is None:
        return True
    names = {
        target.id
        for node in walk(around)
        if isinstance(node, ast.Assign) and is_at(node.value, made.place)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return not names or any(
        isinstance(part, ast.Name) and part.id in names and not any(is_at(node, place) for place in followed)
        for node in walk(around)
        if isinstance(node, ast.Call)
        for part in (*node.args, *(k.value for k in node.keywords))
    )


def _function_at(tree: ast.AST, place: Place) -> ast.AST:
    """The innermost function around a place, or the file."""
    functions = (
        node
        for node in walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= place.row <= (node.end_lineno or node.lineno)
    )
    return max(functions, key=lambda node: node.lineno, default=tree)


def _is_made_at(value: Value, place: Place) -> bool:
    made = value.data[1] if value.tag == "extobj" else ()
    return isinstance(made, tuple) and place in made
