"""Writes whose error a rank has caught and told nobody, and what another rank says of the checkpoint behind a barrier.

Terminology: a write is *caught* where it stands in a try statement with a broad clause that goes on. A barrier that the
rank comes to all the same tells the others nothing: the rank that writes a marker behind it, or removes the old
checkpoint, knows its own part alone. Any other collective in between is taken for an agreement, and so is a look at the
files.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.files import guarded_by_rank, writes
from ..traces.nodes import Event, Fallible, Handler, Jump, Op, Region, Tree, Try, every_node
from ..traces.paths import Path, Paths
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.evaluate import rank_dependent
from ..values.value import symbol
from .support_phases import SAVES, is_scratch, marks, puts
from .support_swallowed import broad

if TYPE_CHECKING:
    from ..analysis import Root
    from ..traces.paths import Flow

_ASKS = frozenset({"seen", "list", "read"})


class Written(NamedTuple):
    """The write that a clause guards, whether it has failed on this path, and the barrier that was passed since."""

    event: Event
    handler: Handler
    failed: bool = False
    met: Op | None = None


class Said(NamedTuple):
    """What one rank does as if all had written, with where it stands, and the write that may have failed."""

    step: Event
    where: Where | None
    written: Written


def said_of_caught(root: Root) -> Iterator[Said]:
    """The first step behind each caught write that takes it for granted on every rank."""
    events = root.contents.events
    if not root.contents.by_rank or not events & {"write", "checkpoint-save", "open"}:
        return
    if not any(isinstance(step.node, Try) and step.node.handlers for step in root.steps):
        return
    walk = _Caught()
    walk.run(root.tree, "")
    done: set[Event] = set()
    for said in walk.said:
        if said.written.event not in done and (said.written.event, said.written.met) in walk.passed_failed:
            done.add(said.written.event)
            yield said


class _Caught(Walk):
    """State: the last caught write of every rank, or ""."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Said] = []
        self.passed_failed: set[tuple[Event, Op | None]] = set()

    def tree(self, nodes: Tree, paths: Paths, where: Where | None) -> Flow:
        if where is not None and where.part == "handler" and isinstance(where.node, Try):
            paths = frozenset(_failing(path, where) for path in paths)
        return super().tree(nodes, paths, where)

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op):
            return self._met(node, state) if isinstance(state, Written) else state
        if not isinstance(node, Event):
            return state
        alone = guarded_by_rank(where)
        if isinstance(state, Written):
            if node.name in _ASKS:
                return ""
            if alone and state.met is not None and _takes_for_granted(node):
                self.said.append(Said(node, where, state))
        handler = None if alone or not _is_part(node) else _going_on(where)
        return state if handler is None else Written(node, handler)

    def _met(self, node: Op, state: Written) -> Hashable:
        if node.name != "barrier":
            return ""
        if state.failed:
            self.passed_failed.add((state.event, node))
        return state._replace(met=node)


def _failing(path: Path, where: Where) -> Path:
    """A path that enters the clause which guards its last write: from there on it is known what a flag says."""
    state = path.state
    if isinstance(state, Written) and state.handler is where.handler and state.met is None:
        raised = symbol(("raised", where.node.place)).key
        return Path(state._replace(failed=True), path.facts | {(raised, True)})
    return path


def _going_on(where: Where | None) -> Handler | None:
    """The clause that catches what is raised at a place, where it never raises again and nothing else is told."""
    for w in around(where):
        if isinstance(w.node, Region) and w.node.kind in ("deferred", "agreed"):
            return None
        if isinstance(w.node, Try) and w.part == "body" and w.node.form == "try" and w.node.handlers:
            handler = next(iter(broad(w.node)), None)
            ends = handler is None or any(
                isinstance(inner, Jump) and inner.kind in ("raise", "exit")
                for inner in every_node(handler.body)
            )
            return None if ends else handler
    return None


def _is_part(node: Event) -> bool:
    """Whether a rank writes its part of a checkpoint."""
    if node.name == "checkpoint-save" or (node.name == "write" and node.call.endswith(SAVES)):
        return True
    named = [*node.args, *node.keywords.values(), *([node.receiver] if node.receiver is not None else [])]
    opened = node.name == "open" and writes(node)
    return (opened or node.name == "write") and any(map(rank_dependent, named))


def _takes_for_granted(node: Event) -> bool:
    """Whether a step says that a checkpoint is there, or removes the one before."""
    return (puts(node) and marks(node)) or (node.name == "remove" and not is_scratch(node))
