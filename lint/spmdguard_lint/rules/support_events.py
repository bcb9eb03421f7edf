"""What the rules on order and phases share: from a node of a trace tree to a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Certainty, Finding, RuleInfo, TrailStep
from ..traces.contents import contents_of
from ..traces.divergence import group_key
from ..traces.files import parts_of
from ..traces.nodes import APART, Branch, Event, Jump, Loop, Node, Op, Region, Try
from ..traces.where import Where, around, calls_of
from ..values.value import Place, Value
from .support import site

if TYPE_CHECKING:
    from ..analysis import Analysis, Root


def reading(analysis: Analysis) -> list[Root]:
    """The roots in which whole runs are seen; all of them where an analysis ended early."""
    entries = analysis.entry_roots()
    if any(root.exceeded for root in entries):
        return analysis.roots
    return entries


def finding(
    rule: RuleInfo,
    node: Node,
    message: str,
    help_text: str,
    *,
    certainty: Certainty = "likely",
    steps: Iterable[tuple[Place, str]] = (),
    where: Where | None = None,
    diverging: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
    marks: Iterable[tuple[str, Node]] = (),
) -> Finding:
    """A finding at a node, with the calls that lead there at the end of its trail."""
    trail = [TrailStep(site(place), text) for place, text in steps]
    trail.extend(TrailStep(site(call.place), f"in the call `{call.text}`") for call in calls_of(where)[:4])
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        certainty=certainty,
        message=message,
        help=help_text,
        site=site(node.place),
        trail=tuple(trail),
        diverging=diverging,
        others=others,
        marks=tuple((name, site(marked.place)) for name, marked in marks),
    )


def is_default_group(op: Op) -> bool:
    """Whether an operation is one of all ranks."""
    return group_key(op) is None


def counts(op: Op) -> bool:
    """Whether other ranks wait in an operation for this one."""
    return op.kind in ("collective", "lifecycle")


def argument(node: Event, index: int, keyword: str) -> Value | None:
    """An argument of the call behind an event, by keyword or position."""
    if keyword in node.keywords:
        return node.keywords[keyword]
    return node.args[index] if index < len(node.args) else None


def comes_from(value: Value, places: set[Place]) -> bool:
    """Whether an expression reads what a call at one of the places gave."""
    return any(
        part.tag in ("sym", "extobj") and any(item in places for item in flat(part.data))
        for part in parts_of(value)
    )


def flat(data: object) -> Iterator[object]:
    """A nested tuple's items and itself; a ``Place`` is one item."""
    yield data
    if isinstance(data, tuple) and not isinstance(data, Place):
        for item in data:
            yield from flat(item)


def leaves(node: Branch) -> Iterator[Jump]:
    """The jumps that stand directly in an arm of a branch."""
    for arm in (node.then, node.orelse):
        yield from (inner for inner in arm if isinstance(inner, Jump))


def is_loop(where: Where) -> bool:
    """Whether an enclosing node is a loop, seen from inside its body."""
    return isinstance(where.node, Loop) and where.part == "body"


def catches_here(node: Try) -> bool:
    """Whether a try is there for what may fail, and does not skip collectives when it does."""
    return bool(node.handlers) and not contents_of(node.body).ops


def deferral(where: Where | None) -> Region | None:
    """The innermost deferral around a node."""
    regions = (w.node for w in around(where) if isinstance(w.node, Region))
    return next((region for region in regions if region.kind == "deferred"), None)


def cared_for(where: Where | None) -> bool:
    """Whether an error is kept for later, told to all, caught, or part of handling another one."""
    for w in around(where):
        if isinstance(w.node, Region) and (w.node.kind in ("deferred", "agreed") or w.node.kind in APART):
            return True
        if isinstance(w.node, Try) and (
            w.part in ("handler", "unwinding") or (w.part == "body" and catches_here(w.node))
        ):
            return True
    return False
