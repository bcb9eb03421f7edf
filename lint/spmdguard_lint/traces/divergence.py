"""Divergences: branches, loops and handlers after which ranks no longer call the same collectives.

Method (PARCOACH's criterion on trace trees): a branch whose condition is rank-varying diverges when the
terms of its arms, up to the function's exit, differ. A divergence is then dismissed when some enclosing
block, read for each rank of worlds of 2 to 4 (and for each truth value of an opaque condition), gives every
rank the same term: split barriers, complementary guards, sentinels and always-true rank tests are such.
Cost: one reading of the tree per root; one more per valuation only where a divergence was found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from dataclasses import replace

from ..values.evaluate import rank_dependent
from ..values.value import Place, Taint, doubted
from .columns import NEXT_ROUND, lines
from .doubts import doubtful, leads, made_before, of_another_group, raises_behind, surer_of_groups
from .guards import around_the_rest
from .handlers import try_divergences
from .joined import is_joined
from .judged import Candidate, Divergence, Verdicts, group_key, variance
from .matching import matched, worlds_named
from .nodes import OWN_IN_JOIN, Branch, Call, Jump, Loop, Node, Op, Tree, Try
from .own_data import Joined, own_data
from .pointing import (
    anchor,
    call_name,
    first_apart,
    first_in,
    first_jump,
    first_of_arms_apart,
    first_op,
    handed_in,
    indirect,
    managers_op,
    next_round,
    raised_by,
    telling_jump,
)
from .questions import is_followed
from .smaller_worlds import leaves_smaller_world
from .terms import ABORT, END, Continuation, Reader, Terms, TooLarge, Watcher, root_continuation

__all__ = ["Divergence", "Verdicts", "find_divergences", "group_key", "variance"]

MAX_CONTEXTS = 4  # of the very same nodes
MAX_READINGS = 24  # of one place, read with other arguments
_ENDS = frozenset({"raise", "exit"})
_WAYS_OUT = _ENDS | {"return", "break"}


class _Finder(Watcher):
    """Collects the candidates of one root."""

    def __init__(self) -> None:
        self.candidates: dict[tuple[int, tuple[int, ...]], Candidate] = {}
        self.contexts: dict[Hashable, int] = {}
        self.read: dict[Hashable, dict[Hashable, bool]] = {}
        self.joined: dict[int, Joined] = {}

    def branch(self, node: Branch, then: int, orelse: int, k: Continuation, reader: Reader) -> None:
        taints = variance(node.condition.taint) or own_data(node, reader.enclosing, self.read, self.joined)
        if not taints or "join" in k.regions:
            return
        self._add("branch", node, then, orelse, k, reader, taints)

    def loop(self, node: Loop, k: Continuation, reader: Reader) -> None:
        taints = variance(node.trip)
        if not taints or "join" in k.regions:
            return
        if OWN_IN_JOIN in k.regions and first_op(node.body, reader, regions=k.regions)[0] is None:
            return
        self._add("loop", node, 0, 0, k, reader, taints)

    def try_(self, node: Try, k: Continuation, body_k: Continuation, reader: Reader) -> None:
        self._add("try", node, 0, 0, k, reader, (), body_k)

    def _add(
        self,
        kind: str,
        node: Node,
        then: int,
        orelse: int,
        k: Continuation,
        reader: Reader,
        taints: tuple[Taint, ...],
        body_k: Continuation | None = None,
    ) -> None:
        key = (id(node), tuple(id(c) for c in k.calls))
        same, anywhere = self.contexts.get(id(node), 0), self.contexts.get(node.place, 0)
        if key not in self.candidates and same < MAX_CONTEXTS and anywhere < MAX_READINGS:
            self.contexts[id(node)], self.contexts[node.place] = same + 1, anywhere + 1
            chain = tuple(reversed(reader.enclosing))
            self.candidates[key] = Candidate(kind, node, then, orelse, k, chain, taints, body_k)


def find_divergences(tree: Tree, verdicts: Verdicts | None = None) -> list[Divergence]:
    """All divergences of a root's trace tree, default group first, then sub-groups."""
    found: list[Divergence] = []
    verdicts = verdicts or Verdicts()
    world_only = _find(tree, verdicts, subgroups=False, known=set())
    found.extend(world_only)
    if _has_subgroups(tree):
        unsure = {(d.condition_place, d.shape): d for d in world_only if d.certainty == "possible"}
        known = {(d.condition_place, d.shape) for d in world_only} - unsure.keys()
        for divergence in _find(tree, verdicts, subgroups=True, known=known):
            divergence.subgroup = True
            weaker = unsure.get((divergence.condition_place, divergence.shape))
            if weaker is None or divergence.certainty != "possible":
                found = [one for one in found if one is not weaker]
                found.append(divergence)
    return found


def _has_subgroups(tree: Tree) -> bool:
    stack = [tree]
    while stack:
        for node in stack.pop():
            if isinstance(node, Op) and group_key(node) is not None:
                return True
            stack.extend(node.subtrees())
    return False


def _find(
    tree: Tree, verdicts: Verdicts, *, subgroups: bool, known: set[tuple[Place, str]]
) -> list[Divergence]:
    terms = Terms()
    finder = _Finder()
    reader = Reader(terms, finder, subgroups=subgroups, group_key=group_key)
    with contextlib.suppress(TooLarge):
        reader.read(tree, root_continuation())
    quiet = Reader(terms, None, subgroups=subgroups, group_key=group_key, budget=60_000)
    if finder.candidates:
        quiet.more_worlds = worlds_named(tree)
    result: list[Divergence] = []
    for candidate in finder.candidates.values():
        place = candidate.node.place
        inside = bool(candidate.k.calls)
        as_sure = (place, subgroups, candidate.taints[0].certainty if candidate.taints else "")
        if inside and verdicts.bad.get(as_sure, 0) >= MAX_CONTEXTS:
            continue
        try:
            for divergence in _judge(candidate, terms, quiet, verdicts):
                if (divergence.condition_place, divergence.shape) not in known:
                    result.append(divergence)
                    if inside:
                        verdicts.bad[as_sure] = verdicts.bad.get(as_sure, 0) + 1
        except TooLarge:
            continue
    return result


def _judge(candidate: Candidate, terms: Terms, quiet: Reader, verdicts: Verdicts) -> Iterator[Divergence]:
    node = candidate.node
    if isinstance(node, Branch):
        key = (id(node), quiet.subgroups)
        if key in verdicts.safe:
            return
        candidate = around_the_rest(candidate, node, quiet)
        assert isinstance(candidate.node, Branch)
        node = candidate.node
        if matched(candidate, node.condition, terms, quiet, verdicts, key) or is_followed(candidate, node):
            return
        if leaves_smaller_world(candidate, node, quiet):
            return
        around = candidate.chain[0][0] if candidate.chain else []
        if node not in around or not is_joined(around, around.index(node)):
            yield _branch_divergence(candidate, node, terms, quiet)
    elif isinstance(node, Loop):
        condition = node.count
        if _ends_by_conditions(candidate, node, quiet) or leads(candidate):
            return
        if (
            condition is None
            or not rank_dependent(condition)
            or not matched(candidate, condition, terms, quiet)
        ):
            if raises_behind(candidate, node):
                candidate = replace(candidate, taints=variance(doubted(frozenset(candidate.taints), "time")))
            yield _loop_divergence(candidate, node, terms, quiet)
    elif isinstance(node, Try):
        yield from try_divergences(candidate, node, terms, quiet)


def _ends_by_conditions(candidate: Candidate, loop: Loop, quiet: Reader) -> bool:
    """Whether a loop has no operation, and its ways out stand in branches that differ between ranks themselves.

    Each of those is judged on its own. What a loop further in raises under a condition, and nothing catches, is no way
    out but what no rank should come to.
    """
    if loop.form == "search" or first_op(loop.body, quiet)[0] is not None:
        return False
    stack = [(loop.body, _WAYS_OUT, False, False)]
    while stack:
        tree, ways, further_in, tested = stack.pop()
        for node in tree:
            if isinstance(node, Jump) and node.kind in ways:
                if not (tested and node.kind in _ENDS) or candidate.k.caught(raised_by(node)):
                    return False
            elif isinstance(node, Loop):
                if not variance(node.trip):
                    stack += ((node.body, ways - {"break"}, True, tested), (node.orelse, ways, True, tested))
            elif not (isinstance(node, Branch) and variance(node.condition.taint)):
                inside = _ENDS if isinstance(node, Call) else ways
                deeper = tested or (further_in and isinstance(node, Branch))
                stack.extend((child, inside, further_in, deeper) for child in node.subtrees())
    return True


def _branch_divergence(candidate: Candidate, node: Branch, terms: Terms, quiet: Reader) -> Divergence:
    then_op, then_calls = first_op(node.then, quiet, regions=candidate.k.regions)
    else_op, else_calls = first_op(node.orelse, quiet, regions=candidate.k.regions)
    then_jump, else_jump = first_jump(node.then), first_jump(node.orelse)
    diverging, others = lines(terms, candidate.then), lines(terms, candidate.orelse)
    if then_op is None and else_op is None and then_jump is None and else_jump is None:
        then_op, then_calls = first_op(node.then, quiet, destroy=True)
        else_op, else_calls = first_op(node.orelse, quiet, destroy=True)
    op, calls, jump, brought = then_op, then_calls, then_jump, None
    ahead = first_in(terms, candidate.then) or first_in(terms, candidate.orelse)
    taints = surer_of_groups(candidate.taints, then_op or else_op or ahead)
    if then_op is not None and else_op is not None:
        shape = "order"
        brought = managers_op(node, quiet)
        if brought is None and node.form == "with":
            brought = first_apart(terms, candidate.orelse, candidate.then)  # the block's own, in another way
        if brought is not None:
            op = brought
        else:
            op, calls = first_of_arms_apart(node, candidate.then, candidate.orelse, terms) or (op, calls)
    elif then_op is not None or else_op is not None:
        shape = "arm"
        if then_op is None:
            op, calls, jump = else_op, else_calls, else_jump
            diverging, others = others, diverging
            if then_jump is not None and then_jump.kind in ("raise", "exit", "break", "continue", "return"):
                jump = then_jump
    else:
        shape = "exit"
        if then_jump is None or _leaves_alone(terms, candidate, then_jump, else_jump):
            jump = else_jump
            diverging, others = others, diverging
    if doubtful(candidate, node, shape, jump, quiet):
        taints = tuple(t._replace(certainty="possible") for t in taints)
    skipped = meets = handed = None
    if shape == "exit":
        arm = node.then if jump is then_jump else node.orelse
        jump, path, precondition = telling_jump(arm, candidate.k)
        if jump is not None and all(isinstance(step, Branch) for step in path):
            diverging = lines(terms, quiet.jump(jump, candidate.k))
        call = next((step for step in path if isinstance(step, Call)), None)
        target = call if call is not None else jump if jump is not None else node
        place, text = target.place, getattr(target, "text", node.text)
        if precondition:
            taints = tuple(t._replace(certainty="possible") for t in taints)
        ways = (candidate.then, candidate.orelse) if arm is node.then else (candidate.orelse, candidate.then)
        skipped, meets = first_apart(terms, *ways) or ahead, first_in(terms, ways[0])
        handed = handed_in(candidate.k.calls, candidate.chain, node, quiet)
        if skipped is None:
            skipped = next_round(candidate.chain, quiet)
            if skipped is not None:
                others = tuple(
                    f"next round: {skipped.text}  (line {skipped.place.row})" if line == NEXT_ROUND else line
                    for line in others
                )
    else:
        assert op is not None
        shown = _anchor(node, op, calls) if brought is None else node
        place, text = shown.place, getattr(shown, "text", "")
    if of_another_group(node, op or skipped) or made_before(node, op or skipped):
        taints = tuple(t._replace(certainty="possible") for t in taints)
    return Divergence(
        shape,
        node,
        place,
        text,
        node.condition,
        node.place,
        node.text,
        node.form,
        taints,
        candidate.k.calls,
        diverging,
        others,
        through_call=call_name(calls),
        jump=jump,
        operation=op or skipped,
        implicit=bool(op is not None and op.implicit),
        regions=candidate.k.regions,
        meets=meets,
        handed=handed,
        caught=shape == "exit" and jump is not None and _caught(jump, candidate.k, node.form),
    )


def _anchor(node: Branch, op: Op, calls: tuple[Node, ...]) -> Node:
    """Where to point; where the ranks choose between functions, the call itself, whatever names it has for them."""
    first = calls[0] if calls else None
    chosen = node.form == "ternary" and isinstance(first, Call) and first.place == node.place
    return node if chosen and isinstance(first, Call) and indirect(first) else anchor(op, calls)


def _caught(jump: Jump, k: Continuation, form: str) -> bool:
    """Whether a handler catches what a jump raises, and goes on to further operations (or to the end of a loop)."""
    if jump.kind != "raise":
        return False
    name = raised_by(jump)
    return k.caught(name) and (form in ("next", "missing") or k.raises(name) not in (END, ABORT))


def _leaves_alone(terms: Terms, candidate: Candidate, then_jump: Jump, else_jump: Jump | None) -> bool:
    """Whether, of two arms with a way out, only the second comes to no operation: its ranks are those that leave.

    So it is where the second may raise, and the first goes on to its operations.
    """
    if else_jump is None or (else_jump.kind == "raise" and then_jump.kind in ("raise", "exit")):
        return False
    if else_jump.kind == "raise":
        return first_in(terms, candidate.then) is not None or first_in(terms, candidate.orelse) is None
    if else_jump.kind not in ("return", "break", "continue"):
        return False
    return first_in(terms, candidate.then) is not None and first_in(terms, candidate.orelse) is None


def _loop_divergence(candidate: Candidate, node: Loop, terms: Terms, quiet: Reader) -> Divergence:
    op, calls = first_op(node.body, quiet, regions=candidate.k.regions)
    shown = anchor(op, calls) if op is not None and node.form != "search" else node
    text = op.text if op is not None else node.text
    return Divergence(
        "trip",
        node,
        shown.place,
        getattr(shown, "text", node.text),
        node.count,
        node.place,
        node.text,
        node.form,
        candidate.taints,
        candidate.k.calls,
        (f"leaves the loop `{node.text}` after fewer rounds",),
        (text, "(one more round)"),
        through_call=call_name(calls),
        operation=op,
        regions=candidate.k.regions,
    )
