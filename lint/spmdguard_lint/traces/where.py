"""Where a node stands: the chain of nodes around it in a trace tree."""

from __future__ import annotations

from collections.abc import Iterator

from .nodes import Call, Handler, Node


class Where:
    """The chain of nodes around a node, innermost first; ``part`` tells which subtree of each."""

    __slots__ = ("handler", "node", "outer", "part")

    def __init__(self, node: Node, part: str, outer: Where | None, handler: Handler | None = None) -> None:
        self.node = node
        self.part = part
        self.outer = outer
        self.handler = handler

    def __iter__(self) -> Iterator[Where]:
        current: Where | None = self
        while current is not None:
            yield current
            current = current.outer


def around(where: Where | None) -> Iterator[Where]:
    """The chain, empty at the root."""
    return iter(where) if where is not None else iter(())


def calls_of(where: Where | None) -> tuple[Call, ...]:
    """The followed calls that lead here, outermost first."""
    return tuple(reversed([w.node for w in around(where) if isinstance(w.node, Call)]))


def in_handler(where: Where | None) -> Where | None:
    """The innermost except clause or exceptional finally block around a node."""
    return next((w for w in around(where) if w.part in ("handler", "unwinding")), None)
