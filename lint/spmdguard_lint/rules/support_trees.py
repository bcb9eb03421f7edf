"""Walking trace trees: every node with the nodes around it, and the ranks that can reach it.

Terminology: a *step* is a node with its *path*, the pairs (enclosing node, which part of it) from the
outside in. Parts are "then" and "orelse" of a branch, "body", "orelse", "final" and "handler" of the
rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..model import Certainty, Finding, RuleInfo, TrailStep
from ..traces.divergence import group_key
from ..traces.judged import is_default_group
from ..traces.nodes import (
    APART,
    Branch,
    Call,
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
from ..values.evaluate import Valuation, evaluate, truth
from ..values.value import NONE, Taint, Value
from .support import site, source_text

if TYPE_CHECKING:
    from ..traces.nodes import Handler

WORLDS = ((2, 2), (3, 3), (4, 2))
Path = tuple[tuple[Node, str], ...]


class Step(NamedTuple):
    """A node and what encloses it."""

    node: Node
    path: Path

    @property
    def calls(self) -> tuple[Call, ...]:
        """The followed calls that lead here, outermost first."""
        return tuple(node for node, _ in self.path if isinstance(node, Call))


def steps(tree: Tree, path: Path = (), *, threads: bool = False) -> Iterator[Step]:
    """Every node of a tree in execution order; what runs apart from it only where asked for."""
    stack: list[tuple[Iterator[Node], Path]] = [(iter(tree), path)]
    while stack:
        nodes, around = stack[-1]
        node = next(nodes, None)
        if node is None:
            stack.pop()
            continue
        yield Step(node, around)
        if not threads and not node.subtrees():
            continue
        inside = [
            (iter(child), (*around, (node, part))) for part, child in parts(node, threads=threads) if child
        ]
        stack.extend(reversed(inside))


def parts(node: Node, *, threads: bool = False) -> Iterator[tuple[str, Tree]]:
    """The subtrees of a node by name."""
    if isinstance(node, Branch):
        yield "then", node.then
        yield "orelse", node.orelse
    elif isinstance(node, (Call, Yielded)):
        yield "body", node.body
    elif isinstance(node, Region):
        if threads or node.kind not in APART:
            yield "body", node.body
    elif isinstance(node, Loop):
        yield "body", node.body
        yield "orelse", node.orelse
    elif isinstance(node, Try):
        yield "body", node.body
        for handler in node.handlers:
            yield "handler", handler.body
        yield "orelse", node.orelse
        yield "final", node.final


def waits(node: Node) -> bool:
    """Whether a node is an operation of the default group in which ranks wait for one another."""
    return isinstance(node, Op) and node.kind in ("collective", "lifecycle") and group_key(node) is None


def reaching(path: Path, at: Valuation) -> bool:
    """Whether a rank can come to the end of a path; conditions that cannot be decided are taken to let it."""
    for node, part in path:
        if isinstance(node, Branch) and part in ("then", "orelse"):
            known = truth(node.condition, at)
            if known is not None and known is not (part == "then"):
                return False
    return True


def passed(tree: Tree, step: Step) -> Path:
    """The branches before a step one arm of which leaves, each with the arm that goes on.

    ``tree`` is the one that the step was found in.
    """
    found: list[tuple[Node, str]] = []
    inside = [tree]
    for target in (*(node for node, _ in step.path), step.node):
        here = next((nodes for nodes in inside if any(node is target for node in nodes)), [])
        for node in here:
            if node is target:
                break
            if isinstance(node, Branch) and leaves(node.then) is not leaves(node.orelse):
                found.append((node, "orelse" if leaves(node.then) else "then"))
        inside = list(target.subtrees())
    return tuple(found)


def leaves(nodes: Tree) -> bool:
    """Whether no way leads through a tree to what stands behind it."""
    last = nodes[-1] if nodes else None
    if isinstance(last, Branch):
        return leaves(last.then) and leaves(last.orelse)
    return isinstance(last, Jump) and last.kind not in ("end", "assert")


def members_of(group: Value, at: Valuation) -> tuple[int, ...] | None:
    """The global ranks of the group that a rank holds, where the list that made it is known."""
    if group.tag == "ite":
        chosen = truth(group.data[0], at)
        return None if chosen is None else members_of(group.data[1 if chosen else 2], at)
    if group.tag != "extobj" or group.data[2] is None:
        return None
    members = evaluate(group.data[2], at)
    if not isinstance(members, (tuple, list, range)) or not all(isinstance(m, int) for m in members):
        return None
    return tuple(members)


def chosen(value: Value, at: Valuation) -> Value | None:
    """Which of several values a rank has; None where that is not known."""
    while value.tag == "ite":
        known = truth(value.data[0], at)
        if known is None:
            return None
        value = value.data[1 if known else 2]
    return value


def everybody_in(group: Value, at: Valuation) -> tuple[int, ...] | None:
    """The global ranks of a group, which are all where it is the default one or was made without a list."""
    listed = group.data[2] if group.tag == "extobj" else None
    if is_default_group(group) or (listed is not None and listed.key == NONE.key):
        return tuple(range(at.world))
    return members_of(group, at)


def shown(step: Step) -> Node:
    """Where to point for a step: the outermost followed call that leads to it, or the node itself."""
    calls = step.calls
    return calls[0] if calls else step.node


def handler_of(step: Step) -> Handler | None:
    """The innermost except clause that a step stands in."""
    for node, part in reversed(step.path):
        if isinstance(node, Try) and part == "handler":
            for handler in node.handlers:
                if any(inner is step.node for inner in every_node(handler.body)):
                    return handler
    return None


def finding_at(
    rule: RuleInfo,
    node: Node,
    message: str,
    help_text: str,
    *,
    certainty: Certainty = "likely",
    taints: Iterable[Taint] = (),
    calls: Iterable[Call] = (),
    reached: Node | None = None,
    diverging: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
    marks: Iterable[tuple[str, Node]] = (),
) -> Finding:
    """A finding at a node; the trail names the sources, then the calls, then the operation reached."""
    trail = [TrailStep(site(taint.place), source_text(taint)) for taint in taints]
    trail.extend(
        TrailStep(site(call.place), f"in the call `{call.text}`")
        for call in calls
        if call.place != node.place
    )
    if reached is not None and reached.place != node.place:
        trail.append(TrailStep(site(reached.place), f"`{getattr(reached, 'text', '')}` is the operation"))
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
