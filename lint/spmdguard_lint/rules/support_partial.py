"""Files of ranks that have failed and only logged it, put together as if all of them had come to their end.

Terminology: a rank's *part* is a file whose name holds the rank. It is *lost halfway* where it is written in a try that
catches everything and only logs. A rank that alone reads the parts of all, behind a meeting, cannot tell a part that is
whole from one that is not: nobody has told it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.files import RANKS, Access, Components, preorder
from ..traces.nodes import Handler, Jump, Op, Region, Tree, Try
from ..traces.where import around
from .support_swallowed import broad, only_logs

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..values.value import Place, Value


class Partial(NamedTuple):
    """The clause that only logs, what is written under it, and where one rank reads it with those of the others."""

    handler: Handler
    written: Access
    read: Access


def partial_results(analysis: Analysis) -> Iterator[Partial]:
    """The clauses behind which parts of ranks are put together, each once."""
    seen: set[Place] = set()
    for root in analysis.roots:
        if not root.contents.ops or not root.contents.events & {"open", "write", "checkpoint-save"}:
            continue
        for found in _of_root(analysis, root):
            if found.handler.place not in seen:
                seen.add(found.handler.place)
                yield found


def _of_root(analysis: Analysis, root: Root) -> Iterator[Partial]:
    written = [access for access in root.accesses if access.kind == "write"]
    for access in written:
        names = [path for path, value in zip(access.paths, access.values, strict=True) if _is_own(value)]
        if not names or access.ranks != set(RANKS):
            continue
        handler = _logging_clause(analysis, access)
        if handler is None:
            continue
        for other in root.accesses:
            if other.index > access.index and _collects(other, names) and not _checked(root.tree, other):
                yield Partial(handler, access, other)
                break


def _is_own(value: Value) -> bool:
    """Whether a path holds the rank."""
    return any(taint.kind == "rank" for taint in value.taint)


def _logging_clause(analysis: Analysis, access: Access) -> Handler | None:
    """The clause around an access that catches whatever may be raised there, and only logs it."""
    for w in around(access.where):
        if isinstance(w.node, Region) and w.node.kind in ("deferred", "agreed"):
            return None
        if isinstance(w.node, Try) and w.part == "body" and w.node.form == "try" and w.node.handlers:
            return next((h for h in broad(w.node) if only_logs(analysis, h.place)), None)
    return None


def _collects(access: Access, names: list[Components]) -> bool:
    """Whether some ranks alone read the parts of all, or list their folder, after all have met."""
    if access.kind not in ("read", "list") or not 0 < len(access.ranks) < len(RANKS):
        return False
    if not any(isinstance(phase, Op) for phases in access.phases.values() for phase in phases):
        return False
    return any(_alike(name, path, access.kind) for name in names for path in access.paths)


def _alike(name: Components, path: Components, kind: str) -> bool:
    """Whether a path is that of a part with another number for the rank, or of the folder that is listed."""
    if kind == "list" and path == name[:-1]:
        return bool(path)
    if len(name) != len(path) or name == path:
        return False
    return all(_same_words(one, other) for one, other in zip(name, path, strict=True))


def _same_words(one: object, other: object) -> bool:
    if one == other:
        return True
    if not (isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)):
        return False
    words = [
        (first, second)
        for first, second in zip(one[1:], other[1:], strict=True)
        if isinstance(first, str) or isinstance(second, str)
    ]
    return bool(words) and all(first == second for first, second in words)


def _checked(tree: Tree, access: Access) -> bool:
    """Whether what was read may be found wanting: a raise or an exit stands behind it."""
    order = preorder(tree)
    return any(
        isinstance(node, Jump) and node.kind in ("raise", "exit") and index > access.index
        for node, index in order.items()
    )
