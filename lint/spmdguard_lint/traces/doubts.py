"""Doubts: why arms that look unequal may yet be equal, so that their divergence is only possible.

Terminology: a *cut call* was not followed, because what may be followed from one root was used up, or because the
function was handed to a library that calls it. One that communicates is a *hidden call*. An arm that holds one is
not known to its end. Cost: one visit per node of the two arms, only where a divergence was found.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable
from dataclasses import replace
from typing import TypeGuard

from ..values.evaluate import Valuation, rank_dependent, truth
from ..values.value import OF_A_STAGE, Place, Taint, Value, parts_of
from .judged import Candidate
from .matching import matched
from .nodes import Branch, Call, Event, Fallible, Jump, Loop, Node, Op, Region, Tree, every_node
from .pointing import arms_around, loop_around, polls, raised_by, way_to
from .terms import ABORT, END, NEVER, Continuation, Reader

HIDDEN = "hidden-call"
CUT = "cut-call"
_OF_A_STEP = re.compile(r"(?i:loss|grad)")
_ALONE = re.compile(
    r"not [\w.]*(distributed|is_initialized|dist_avail|is_parallel|is_dist\b)"
    r"|(world|group)_size\w*(\([^()]*\))? *(== *1|<= *1|< *2)\b"
)
_TOGETHER = re.compile(
    r"[\w.]*(distributed|is_initialized|dist_avail\w*|is_parallel|is_dist)\b(\([^()]*\))?"
    r"|[\w.]*(world|group)_size\w*(\([^()]*\))? *(> *1|>= *2|!= *1)"
)


def doubtful(candidate: Candidate, node: Branch, shape: str, jump: Jump | None, quiet: Reader) -> bool:
    """Whether the arms of a branch may be equal after all."""
    if of_one_rank(candidate) or (shape == "order" and follows_orders(node)):
        return True
    if differ_by_items(candidate, node, quiet):
        return True
    if shape == "exit":
        if jump is not None and jump.kind == "raise" and _fails_for_all(candidate, node, jump):
            return True
        if jump is not None and jump.kind in ("return", "break") and came_in_time(candidate):
            return True
        if jump is None or jump.kind not in ("raise", "exit") or raised_elsewhere(candidate, node, jump):
            return differ_by_raise(candidate, node, quiet)
        return runs_alone(candidate, quiet)
    then_hides, else_hides = hides(node.then), hides(node.orelse)
    if shape == "order":
        return then_hides or else_hides or differ_by_raise(candidate, node, quiet)
    return (then_hides and not quiet.has_ops(node.then)) or (else_hides and not quiet.has_ops(node.orelse))


def surer_of_groups(taints: tuple[Taint, ...], operation: Op | None) -> tuple[Taint, ...]:
    """The same reasons; all ranks make a group, also those whose stage of a model holds nothing that needs one."""
    if operation is None or operation.kind != "lifecycle":
        return taints
    return tuple(t._replace(certainty="likely") if t.text == OF_A_STAGE else t for t in taints)


def made_before(node: Branch, operation: Op | None) -> bool:
    """Whether an operation is the making of a group that an earlier call has made, as far as data decide here.

    A helper that keeps what it makes is as a rule first called where all ranks are.
    """
    return operation is not None and operation.once and not rank_dependent(node.condition)


def of_one_rank(candidate: Candidate) -> bool:
    """Whether the branch stands in an arm that a single rank takes: there, nobody goes another way."""
    return any(
        rank_dependent(node.condition) and _takes_one(node.condition, arm is node.then)
        for node, arm, _ in arms_around(candidate.chain)
    )


def _takes_one(condition: Value, holds: bool) -> bool:
    """Whether a condition on the rank holds, or fails, on exactly one rank."""
    for world in (2, 3, 4):
        known = [truth(condition, Valuation(rank, world, 2)) for rank in range(world)]
        if None in known or known.count(holds) != 1:
            return False
    return True


def leads(candidate: Candidate) -> bool:
    """Whether a statement stands in the arm of a leader: as many rounds as it makes, so many the others are told of."""
    return any(
        rank_dependent(node.condition) and obeys(other, arm)
        for node, arm, other in arms_around(candidate.chain)
    )


def follows_orders(node: Branch) -> bool:
    """Whether one arm goes round until it is told to stop, and the other ends with the call that tells it.

    A leader that broadcasts commands and the ranks that carry them out: what they call is decided by what they are
    told, which no reading of their code shows.
    """
    return obeys(node.orelse, node.then) or obeys(node.then, node.orelse)


def obeys(follower: Tree, leader: Tree) -> bool:
    """Whether one arm goes round until the last call of the other one tells it to stop."""
    said = [op.name for op in every_node(leader) if isinstance(op, Op) and op.kind == "collective"]
    if not said or not said[-1].startswith("broadcast"):
        return False
    for loop in every_node(follower):
        if not isinstance(loop, Loop):
            continue
        inside = list(every_node(loop.body))
        told = {op.place for op in inside if isinstance(op, Op) and op.name == said[-1]}
        for branch in inside if told else ():
            if isinstance(branch, Branch) and _is_left(branch) and _was_told(branch.condition, told):
                return True
    return False


def _is_left(branch: Branch) -> bool:
    arms = (*branch.then, *branch.orelse)
    return any(isinstance(node, Jump) and node.kind in ("break", "return", "end") for node in arms)


def _was_told(condition: Value, told: set[Place]) -> bool:
    """Whether a condition asks for what one of the operations at these places has written."""
    labels = (part.data[0] for part in parts_of(condition) if part.tag == "sym")
    return any(
        isinstance(one, tuple) and len(one) > 1 and one[0] == "filled" and one[1] in told for one in labels
    )


_OWN_MESH = frozenset({"full_tensor", "redistribute"})


def of_another_group(node: Branch, op: Op | None) -> bool:
    """Whether the operation is one of its tensor's own mesh, and the condition tells no rank of the world apart.

    Where the condition asks for a stage or for the members of a group, the mesh mostly lies inside one of them.
    """
    if op is None or op.name not in _OWN_MESH:
        return False
    return all(
        truth(node.condition, Valuation(rank, world, local)) is None
        for world, local in ((2, 2), (4, 2))
        for rank in range(world)
    )


def raised_elsewhere(candidate: Candidate, node: Branch, jump: Jump) -> bool:
    """Whether the other arm, or what follows, comes to the same raise: what decides about it stands further in.

    A raise in a followed call may stand in a call that was not followed, too.
    """
    around = candidate.chain[0][0] if candidate.chain else []
    rest = [around[around.index(node) + 1 :]] if node in around else []
    followed = False
    for arm in (node.then, node.orelse):
        way = way_to(jump, arm)
        if way is None:
            rest.append(arm)
        else:
            followed = any(isinstance(step, Call) for step in way)
    return any(_comes_to(tree, jump, followed) for tree in rest)


def _comes_to(nodes: Tree, jump: Jump, followed: bool) -> bool:
    return any(
        (isinstance(inner, Jump) and inner.place == jump.place)
        or (followed and isinstance(inner, Event) and inner.name in (HIDDEN, CUT))
        or any(_comes_to(child, jump, followed) for child in inner.subtrees())
        for inner in nodes
    )


def gives_up(candidate: Candidate, jump: Jump) -> bool:
    """Whether a rank that has polled for too long ends: without a limit, it would leave the others waiting for ever."""
    kinds = {taint.kind for taint in candidate.taints}
    only_time = "time" in kinds and kinds <= {"time", "filesystem", "environment"}
    if not only_time or candidate.k.caught(raised_by(jump)):
        return False
    around = loop_around(candidate.chain)
    return around is not None and polls(around[0])


def _fails_for_all(candidate: Candidate, node: Branch, jump: Jump) -> bool:
    """Whether a raise is one that mostly ends all ranks alike, or none."""
    return gives_up(candidate, jump) or checks(candidate, jump) or of_no_member(node.condition)


def of_no_member(condition: Value) -> bool:
    """Whether a condition asks if this rank is no member of a group: each rank is mostly asked for one of its own."""
    if condition.tag != "expr" or condition.data[0] not in ("==", "<"):
        return False
    first, second = condition.data[1]
    number = second.data[0] if second.tag == "const" else None
    return first.tag == "group_rank" and number == (-1 if condition.data[0] == "==" else 0)


def checks(candidate: Candidate, jump: Jump) -> bool:
    """Whether a jump is an assertion in no loop, and on no loss: a program that checks its own result at the end."""
    if not jump.text.startswith("assert ") or _OF_A_STEP.search(jump.text):
        return False
    return loop_around(candidate.chain) is None


def raises_behind(candidate: Candidate, loop: Loop) -> bool:
    """Whether a loop polls for something up to a limit, and ends its rank behind it: a precondition of all ranks."""
    if not polls(loop):
        return False
    for nodes, k in candidate.chain:
        if loop in nodes:
            rest = (*loop.orelse, *nodes[nodes.index(loop) + 1 :])
            behind = next((node for node in rest if not isinstance(node, (Event, Fallible))), None)
            return isinstance(behind, Jump) and behind.kind == "raise" and not k.caught(raised_by(behind))
    return False


def came_in_time(candidate: Candidate) -> bool:
    """Whether a branch stands in a loop that polls: what it waits for has come, or its rank polls on, and ends."""
    around = loop_around(candidate.chain)
    return around is not None and raises_behind(candidate, around[0])


def runs_alone(candidate: Candidate, quiet: Reader) -> bool:
    """Whether the branch stands in the arm, free of collectives, of a run (or a group) of one process."""
    for (inner, _), (outer, _) in itertools.pairwise(candidate.chain):
        for node in outer:
            if not isinstance(node, Branch) or node.condition.taint or quiet.has_ops(inner):
                continue
            if inner is node.then and all(_ALONE.search(part) for part in node.text.split(" or ")):
                return True
            if inner is node.orelse and _TOGETHER.fullmatch(node.text):
                return True
    return False


def hides(nodes: Tree) -> bool:
    """Whether a tree holds a hidden call, be it in a thread that it starts."""
    stack = [nodes]
    while stack:
        for node in stack.pop():
            if isinstance(node, Event) and node.name == HIDDEN:
                return True
            stack.extend([node.body] if isinstance(node, Region) else node.subtrees())
    return False


def differ_by_raise(candidate: Candidate, node: Branch, quiet: Reader) -> bool:
    """Whether only exceptions that end the rank part it from the others: fatal preconditions of one arm."""
    chain = tuple((nodes, _surviving(k)) for nodes, k in candidate.chain)
    return matched(replace(candidate, chain=chain), node.condition, quiet.terms, quiet)


def differ_by_items(candidate: Candidate, node: Branch, quiet: Reader) -> bool:
    """Whether both ways go through the same items, and only what they ask of an item parts them.

    ``for size in sizes: if size: barrier()`` on some ranks, and on the others a loop that leaves out what is empty:
    the questions are mostly the same in other words, which no comparison of their texts shows.
    """
    loops = [inner for arm in (node.then, node.orelse) for inner in every_node(arm) if _asks_items(inner)]
    if not loops or not candidate.chain:
        return False
    here = [inner for inner in every_node(node.then) if inner in loops] or loops
    around = every_node(candidate.chain[-1][0])
    others = [inner for inner in around if inner not in here and _asks_items(inner)]
    if _sources(here).isdisjoint(_sources(others)):
        return False
    return matched(candidate, node.condition, quiet.terms, quiet, any_item=True)


def _asks_items(node: Node) -> TypeGuard[Loop]:
    """Whether a node is a loop in which a condition that all ranks share may decide about operations."""
    if not isinstance(node, Loop) or node.iterated is None:
        return False
    inside = list(every_node(node.body))
    return any(isinstance(inner, Op) for inner in inside) and any(
        isinstance(inner, Branch) and not inner.condition.taint for inner in inside
    )


def _sources(loops: list[Loop]) -> set[Hashable]:
    """What some loops run over, be it behind ``enumerate`` or beside something else in ``zip``."""
    parts = (part for loop in loops if loop.iterated is not None for part in parts_of(loop.iterated))
    return {part.key for part in parts if part.tag in ("obj", "sym")}


def _surviving(k: Continuation) -> Continuation:
    """The continuation of a rank that raises nothing which would end it."""

    def raises(name: str) -> int:
        term = k.raises(name)
        return NEVER if term in (END, ABORT) else term

    return k.but(raises=raises, raise_key=("surviving", k.raise_key))
