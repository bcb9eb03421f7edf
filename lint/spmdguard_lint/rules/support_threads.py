"""Files that threads write, whose errors end the thread alone: what is said behind the ``join`` as if all went well.

Terminology: a thread is *unheard* where what it runs writes a checkpoint outside of any ``try``: an error there ends
the thread, ``join`` returns as it does otherwise, and nobody else is told. A *marker* is as in ``support_phases``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.nodes import Event, Node, Region, Tree, Try, every_node
from .support_phases import SAVES, marks, puts

if TYPE_CHECKING:
    from ..analysis import Analysis, Root

_STARTS = ("threading.Thread", "threading.Timer")
_ASKS = frozenset({"seen", "list", "read"})


class Unheard(NamedTuple):
    """The write in a thread, the wait for the thread, and what is said behind it."""

    written: Event
    joined: Event
    marked: Event


def unheard_writes(analysis: Analysis, root: Root) -> Iterator[Unheard]:
    """The waits for threads behind which a marker is written, whether or not their files are there; each once."""
    if not root.contents.events >= {"thread-run", "thread-join"} or "thread" not in root.contents.regions:
        return
    if any(b"excepthook" in module.source.content for module in analysis.project.relevant_modules()):
        return
    nodes = list(every_node(root.tree))
    written: Event | None = None
    joined: Event | None = None
    found: set[Event] = set()
    started = ""
    for node in nodes:
        if isinstance(node, Event) and node.name == "thread-run":
            started = node.call
        elif isinstance(node, Region) and node.kind == "thread" and started.endswith(_STARTS):
            written = next(_saved(node.body), None)
            joined = None
        elif isinstance(node, Event) and written is not None:
            if node.name == "thread-join" and node.call.endswith(".join"):
                joined = node
            elif node.name in _ASKS:
                joined = None
            elif joined is not None and joined not in found and puts(node) and marks(node):
                found.add(joined)
                yield Unheard(written, joined, node)


def _saved(tree: Tree) -> Iterator[Event]:
    """The checkpoints that a tree writes outside of any clause that would hear of an error."""
    for node in tree:
        if isinstance(node, Event) and node.name == "write" and node.call.endswith(SAVES):
            yield node
        yield from (event for child in _unwatched(node) for event in _saved(child))


def _unwatched(node: Node) -> Iterator[Tree]:
    if not (isinstance(node, Try) and node.handlers):
        yield from node.subtrees()
