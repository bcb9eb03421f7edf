"""What stands in a trace tree at all, so that a rule reads only the trees that concern it.

Cost: one visit per node, once per root.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..values.evaluate import rank_dependent
from .nodes import Branch, Event, Fallible, Jump, Loop, Op, Region, Tree


@dataclass
class Contents:
    """Names of the events and operations of a tree, and which other nodes it has.

    ``sure``: some call raises each time. ``begins``: some operation may only be begun by its call, or is given
    the choice.
    ``named``: some operation is given the name of a checkpoint.
    ``by_rank``: the rank decides some branch; ``raises_kept``: some jump raises an exception kept before.
    """

    events: set[str] = field(default_factory=set)
    ops: set[str] = field(default_factory=set)
    regions: set[str] = field(default_factory=set)
    jumps: set[str] = field(default_factory=set)
    num_loops: int = 0
    fallible: int = 0
    io: bool = False
    sure: bool = False
    begins: bool = False
    named: bool = False
    by_rank: bool = False
    raises_kept: bool = False

    @property
    def defers(self) -> bool:
        """Whether an exception may be kept for later in it."""
        return "deferred" in self.regions or "defer-error" in self.events


def raises_kept(node: Jump) -> bool:
    """Whether a jump raises an exception that an earlier except clause has bound."""
    value = node.value
    if node.kind != "raise" or value is None or value.tag not in ("sym", "ite"):
        return False
    return any(taint.kind == "exception" for taint in value.taint)


def contents_of(tree: Tree) -> Contents:
    """The contents of a tree, nested trees included."""
    found = Contents()
    stack = [tree]
    while stack:
        for node in stack.pop():
            if isinstance(node, Event):
                found.events.add(node.name)
            elif isinstance(node, Op):
                found.ops.add(node.name)
                found.named = found.named or bool(node.paths)
                found.begins = found.begins or node.begins is not None or node.handle
            elif isinstance(node, Region):
                found.regions.add(node.kind)
            elif isinstance(node, Jump):
                found.jumps.add(node.kind)
                found.raises_kept = found.raises_kept or raises_kept(node)
            elif isinstance(node, Loop):
                found.num_loops += 1
            elif isinstance(node, Fallible):
                found.fallible += 1
                found.io = found.io or node.io
                found.sure = found.sure or bool(node.sure)
            elif isinstance(node, Branch) and not found.by_rank:
                found.by_rank = rank_dependent(node.condition)
            stack.extend(node.subtrees())
    return found
