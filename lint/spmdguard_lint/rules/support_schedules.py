"""Schedules of messages that some ranks run alone: a function in which a rank waits for one that is not in it.

Terminology: a *schedule* is a called function that all ranks are meant to run: it holds sends and receives, and what
one rank receives in it, another one sends in it. A *switch* is a part of a condition that is the same on all ranks and
otherwise not known; the condition is read with all switches on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.divergence import group_key
from ..traces.nodes import Branch, Call, Op, Tree
from ..values.evaluate import Valuation, evaluate, rank_dependent, truth
from ..values.value import Value
from .support_messages import MESSAGES, RECEIVES, SENDS
from .support_trees import Path, Step, leaves, parts, reaching, steps

if TYPE_CHECKING:
    from ..analysis import Root

_WORLDS = ((2, 2), (4, 2))


class Alone(NamedTuple):
    """The call of a schedule, the receive in which a rank waits there, and the rank that it waits for."""

    call: Call
    receive: Op
    rank: int
    other: int
    path: Path


class Arm(NamedTuple):
    """Nodes to which only ranks come for which a condition holds or does not, and those of the other ranks."""

    condition: Value
    nodes: Tree
    others: Tree
    holds: bool
    path: Path


def run_by_some(root: Root) -> Iterator[Alone]:
    """Calls of schedules in an arm that only some ranks take, where one of them waits for a rank outside."""
    if root.contents.ops.isdisjoint(SENDS) or root.contents.ops.isdisjoint(RECEIVES):
        return
    messages = _messages(root.tree)
    for arm in _arms(root.tree, ()):
        inside = _messages(arm.nodes)
        if not inside or not _of_one_call(inside) or _messages(arm.others):
            continue
        places = {one.node.place for one in inside}
        if any(one.node.place not in places for one in messages):
            continue  # somebody else may send what is received here
        found = _waiting(arm, inside)
        if found is not None:
            yield found


def _arms(tree: Tree, path: Path) -> Iterator[Arm]:
    """What only some ranks come to: the arms of branches, and what stands behind one that others leave in."""
    for position, node in enumerate(tree):
        if isinstance(node, Branch) and rank_dependent(node.condition):
            behind = tree[position + 1 :]
            for nodes, others, holds in ((node.then, node.orelse, True), (node.orelse, node.then, False)):
                elsewhere = [*others, *behind] if leaves(nodes) else others
                yield Arm(node.condition, nodes, elsewhere, holds, path)
                if leaves(others) and not leaves(nodes):
                    yield Arm(node.condition, behind, [*nodes, *others], holds, path)
        for part, child in parts(node):
            yield from _arms(child, (*path, (node, part)))


def _messages(tree: Tree) -> list[Step]:
    return [step for step in steps(tree) if isinstance(step.node, Op) and step.node.name in MESSAGES]


def _of_one_call(messages: list[Step]) -> bool:
    """Whether messages stand in one and the same call, each with a partner on the default group."""
    calls = {id(step.calls[0]) if step.calls else 0 for step in messages}
    return len(calls) == 1 and all(_is_plain(step) for step in messages)


def _is_plain(step: Step) -> bool:
    op = step.node
    plain = (
        isinstance(op, Op) and op.kind == "point-to-point" and group_key(op) is None and op.root is not None
    )
    return plain and bool(step.calls)


def _waiting(arm: Arm, inside: list[Step]) -> Alone | None:
    """A rank in the arm that waits for a rank outside, which would send to it if it were inside."""
    for world, local in _WORLDS:
        on = dict.fromkeys(switches(arm.condition), True)
        ranks = [Valuation(rank, world, local, on) for rank in range(world)]
        known = [truth(arm.condition, at) for at in ranks]
        if None in known:
            continue
        here = {
            at.rank
            for at, one in zip(ranks, known, strict=True)
            if one is arm.holds and reaching(arm.path, at)
        }
        for step in inside:
            op = step.node
            if not isinstance(op, Op) or op.name not in RECEIVES or op.root is None:
                continue
            for rank in sorted(here):
                peer = evaluate(op.root, ranks[rank])
                if (
                    not _surely(step.path, ranks[rank])
                    or not isinstance(peer, int)
                    or peer not in range(world)
                ):
                    continue
                if peer not in here and reaching(arm.path, ranks[peer]) and _sends(inside, ranks[peer], rank):
                    return Alone(step.calls[0], op, rank, peer, arm.path)
    return None


def _sends(inside: list[Step], at: Valuation, receiver: int) -> bool:
    return any(
        isinstance(step.node, Op)
        and step.node.name in SENDS
        and step.node.root is not None
        and evaluate(step.node.root, at) == receiver
        and _surely(step.path, at)
        for step in inside
    )


def _surely(path: Path, at: Valuation) -> bool:
    """Whether a rank comes to the end of a path, as far as the rank decides."""
    return all(
        truth(node.condition, at) is (part == "then")
        for node, part in path
        if isinstance(node, Branch) and rank_dependent(node.condition)
    )


def switches(condition: Value) -> list[Hashable]:
    """The keys of the parts of a condition that no rank stands in, and that are the same everywhere."""
    if rank_dependent(condition) and condition.tag == "expr" and condition.data[0] in ("and", "or", "not"):
        return [key for operand in condition.data[1] for key in switches(operand)]
    return [] if condition.taint or condition.tag == "const" else [condition.key]
