"""What speaks against calling on every rank what one rank calls in a branch: marks for the fixes.

Terminology: a call is *done alone* where it comes to a write, an upload or a tracker that no rank test of its own
guards; a condition is *more than who* where it also decides whether the call happens on any rank at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.files import writes
from ..traces.judged import variance
from ..traces.nodes import Branch, Call, Event, Node, Tree
from ..values.evaluate import Valuation, rank_dependent, truth

if TYPE_CHECKING:
    from ..traces.divergence import Divergence
    from ..values.value import Value

WRITES = frozenset(
    {"open", "write", "mkdir", "rename", "remove", "upload", "network", "subprocess"}
    | {"tracker-start", "tracker-log", "tracker-end"}
)
_RANKS = frozenset({"rank", "local_rank", "node_rank", "group_rank"})
_WHO = frozenset({"rank", "group-rank"})


def with_move_marks(finding: Finding, divergence: Divergence) -> Finding:
    """The finding with the marks ``done alone`` and ``more than who`` where they hold, at its own place."""
    return replace(finding, marks=(*finding.marks, *((name, finding.site) for name in _reasons(divergence))))


def _reasons(divergence: Divergence) -> Iterator[str]:
    node = divergence.node
    if isinstance(node, Branch) and any(
        isinstance(inner, Call) and inner.place == divergence.place and _writes(inner.body)
        for inner in _all(node.then, node.orelse)
    ):
        yield "done alone"
    condition = divergence.condition
    if condition is not None and not all(map(_tells_who, _varying(condition))):
        yield "more than who"


def _all(*trees: Tree) -> Iterator[Node]:
    stack = list(trees)
    while stack:
        for node in stack.pop():
            yield node
            stack.extend(node.subtrees())


def _writes(body: Tree) -> bool:
    """Whether a function's trace writes or publishes outside the branches that the rank decides."""
    stack = [body]
    while stack:
        for node in stack.pop():
            if isinstance(node, Event) and node.name in WRITES and (node.name != "open" or writes(node)):
                return True
            if not (isinstance(node, Branch) and rank_dependent(node.condition)):
                stack.extend(node.subtrees())
    return False


def _varying(condition: Value) -> list[Value]:
    """The operands of ``a and b`` that may differ between ranks, or the condition itself."""
    if condition.tag == "expr" and condition.data[0] == "and":
        return [operand for operand in condition.data[1] if variance(operand.taint)]
    return [condition]


def _tells_who(operand: Value) -> bool:
    """Whether an operand only chooses ranks: the rank decides it, or is compared with something."""
    if any(taint.kind not in _WHO for taint in operand.taint):
        return False
    if operand.tag == "expr" and operand.data[0] in ("not", "and", "or"):
        return all(map(_tells_who, operand.data[1]))
    if operand.tag == "expr" and any(part.tag in _RANKS for part in operand.data[1]):
        return True
    return operand.tag in _RANKS or all(truth(operand, Valuation(rank, 2)) is not None for rank in (0, 1))
