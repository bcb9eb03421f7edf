"""Dismiss a divergence: some enclosing block gives every rank the same term after all.

The block is read for each rank of worlds of 2 to 4, and of one as large as the condition's numbers ask for,
and for each truth value of the opaque parts of the condition. Cost: one reading per valuation, remembered. Where no
block does, one that gives every rank the same up to some statement of it is asked for (``rejoined``).
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from itertools import product
from typing import NamedTuple

from ..values.evaluate import Valuation, rank_constants, rank_dependent, world_dependent
from ..values.value import Value
from .judged import Candidate, Verdicts
from .nodes import Branch, Tree
from .rejoined import rejoins
from .terms import NEVER, Continuation, Reader, Terms

WORLDS = ((2, 2), (3, 3), (4, 2))


def matched(
    candidate: Candidate,
    condition: Value,
    terms: Terms,
    quiet: Reader,
    verdicts: Verdicts | None = None,
    key: tuple[int, bool] | None = None,
    *,
    any_item: bool = False,
) -> bool:
    """Whether some enclosing block gives every rank the same term after all.

    With ``any_item``, it does so if what loops ask of their items is the same question.
    """
    atoms = _atoms(condition)
    by_rank = rank_dependent(condition)
    if not by_rank and not atoms:
        return False
    worlds = [*worlds_for(condition), *quiet.more_worlds]
    shared = shared_conditions(condition) if by_rank else []
    question = Question(worlds, atoms, shared, by_rank, any_item=any_item)
    answers = [question]
    if by_rank and not _raises(candidate, quiet):
        answers.append(question._replace(nobody_raises=True))
    for asked in answers:
        for nodes, k in candidate.chain:
            if len(nodes) <= 1 and nodes and nodes[0] is candidate.node and not by_rank:
                continue
            if asked.nobody_raises and "raise" not in quiet.ways_out(nodes):
                continue
            if _same_for_all(nodes, k, quiet, asked):
                if verdicts is not None and key is not None and k.calls == candidate.k.calls:
                    verdicts.safe.add(key)
                return True
        if by_rank and rejoins(candidate.chain, candidate.node, quiet, partial(_same_for_all, asked=asked)):
            return True
    return False


class Question(NamedTuple):
    """Whether ranks do alike in these worlds, for each truth of the opaque parts of a condition.

    ``nobody_raises`` leaves out what leaves by an exception that nothing catches; ``any_item`` takes all that loops ask
    of their items for one and the same question.
    """

    worlds: list[tuple[int, int, tuple[int, ...]]]
    atoms: list[Hashable]
    shared: list[Hashable]
    by_rank: bool
    nobody_raises: bool = False
    any_item: bool = False


def _raises(candidate: Candidate, quiet: Reader) -> bool:
    """Whether a statement itself decides who raises. Else exceptions are no matter of its own.

    What is skipped by an exception between two halves that belong together is another finding.
    """
    return any("raise" in quiet.ways_out(arm) for arm in candidate.node.subtrees())


def _same_for_all(nodes: Tree, k: Continuation, quiet: Reader, asked: Question) -> bool:
    """Whether all ranks do alike; a world that an assertion rules out says nothing."""
    reached = False
    for world, local, ranks in asked.worlds:
        for agreed in product((True, False), repeat=len(asked.shared)):
            common = tuple(zip(asked.shared, agreed, strict=True))
            seen: set[int] = set()
            for rank in ranks if asked.by_rank else (0,):
                for truths in product((True, False), repeat=len(asked.atoms)):
                    known = (*common, *zip(asked.atoms, truths, strict=True))
                    reader = _reader_at(quiet, rank, world, local, known, asked)
                    if quiet.left <= 0:
                        return False
                    before = reader.left
                    seen.add(reader.read(nodes, k))
                    quiet.left -= before - reader.left
                    if len(seen) > 1:
                        return False
            reached = reached or seen != {NEVER}
    return reached


_LOGIC = ("and", "or", "not")


def shared_conditions(condition: Value, limit: int = 3) -> list[Hashable]:
    """Conditions that hold on all ranks or on none and have a say in one that the ranks decide.

    They choose between ranks (``local_rank if local else rank``), or stand beside the rank's test
    (``distributed and rank != 0``): the arms may ask them again.
    """
    found: list[Hashable] = []
    stack = [condition]
    while stack:
        value = stack.pop()
        if value.tag == "ite":
            chooser = value.data[0]
            if not chooser.taint and chooser.tag != "const" and chooser.key not in found:
                found.append(chooser.key)
            stack.extend(value.data)
        elif value.tag == "expr":
            operator, operands = value.data
            stack.extend(operands)
            found.extend(
                operand.key
                for operand in (operands if operator in _LOGIC else ())
                if _is_shared(operand) and operand.key not in found
            )
    return found[:limit]


def _is_shared(value: Value) -> bool:
    """Whether a part of a condition is the same on every rank and is no combination of others."""
    combined = value.tag == "expr" and value.data[0] in _LOGIC
    return not value.taint and value.tag != "const" and not combined


def worlds_named(tree: Tree, limit: int = 4) -> list[tuple[int, int, tuple[int, ...]]]:
    """Larger worlds that the conditions of a tree tell apart.

    Of those that a condition on the world size names, the first ranks and the last are asked. Where several conditions
    on the rank name numbers, one world has ranks beyond all of them: two tests together may pick out a rank that
    neither picks out alone (``rank in (0, 2)`` and ``rank % 2`` leave none of 0 to 3).
    """
    sizes: set[int] = set()
    named: dict[Hashable, set[int]] = {}
    stack = [tree]
    while stack:
        for node in stack.pop():
            if isinstance(node, Branch):
                numbers = rank_constants(node.condition)
                if world_dependent(node.condition):
                    sizes.update(size for size in numbers if size > WORLDS[-1][0])
                if numbers and rank_dependent(node.condition):
                    named[node.condition.key] = {number for number in numbers if number <= _NEAR}
            stack.extend(node.subtrees())
    worlds = [(size, size, (*range(min(size, 4)), size - 1)) for size in sorted(sizes)[:limit]]
    near = set().union(*named.values())
    if len(named) > 1 and near:
        size = max(near) + 3
        worlds.append((size, size, _ranks_near(near, size)))
    return worlds


_NEAR = 64


def _ranks_near(numbers: set[int], world: int) -> tuple[int, ...]:
    """The first ranks and the last of a world, and those around some numbers."""
    near = {0, 1, world - 2, world - 1, *(n + d for n in sorted(numbers)[:4] for d in (-1, 0, 1))}
    return tuple(sorted(rank for rank in near if 0 <= rank < world))


def worlds_for(condition: Value) -> list[tuple[int, int, tuple[int, ...]]]:
    """Worlds to read in: the small ones, and one large enough for every rank that the condition names."""
    worlds = [(world, local, tuple(range(world))) for world, local in WORLDS]
    named = sorted(rank_constants(condition))
    if named and named[-1] > WORLDS[-1][0] - 2:
        even = 2 * ((named[-1] + 3) // 2)
        for world, local in ((even, 2), (even + 1, even + 1)):
            worlds.append((world, local, _ranks_near(set(named), world)))
    return worlds


def _reader_at(
    quiet: Reader,
    rank: int,
    world: int,
    local: int,
    truths: tuple[tuple[Hashable, bool], ...],
    asked: Question,
) -> Reader:
    """The reader of one valuation; kept, so that what it has read serves the next question."""
    key = (rank, world, local, truths, asked.nobody_raises, asked.any_item)
    reader = quiet.by_valuation.get(key)
    if reader is None:
        valuation = Valuation(rank, world, local, dict(truths))
        reader = Reader(quiet.terms, None, valuation, subgroups=quiet.subgroups, group_key=quiet.group_key)
        reader.operating = quiet.operating
        reader.leaving = quiet.leaving
        reader.nobody_raises = asked.nobody_raises
        reader.any_item = asked.any_item
        quiet.by_valuation[key] = reader
    return reader


def _atoms(condition: Value, limit: int = 3) -> list[Hashable]:
    """Opaque rank-varying parts of a condition that are not decided by the rank."""
    found: list[Hashable] = []
    stack = [condition]
    while stack:
        value = stack.pop()
        if all(taint.kind == "synced" for taint in value.taint):
            continue
        if value.tag == "expr" and value.data[0] in ("not", "and", "or"):
            stack.extend(value.data[1])
        elif value.tag == "ite" and value.data[0].taint and rank_dependent(value):
            stack.extend(value.data)
        elif not rank_dependent(value) and value.key not in found:
            found.append(value.key)
    return found[:limit]
