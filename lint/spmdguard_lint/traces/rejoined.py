"""Branches that a later one completes: the ranks are together again before the function ends.

Terminology: statements of a list are a *pairing* where every rank does alike from the first to the last of them,
however it goes on behind. Pairings are taken from the front, each as short as can be, and do not overlap: of three
halves the first two belong together, and the third stays alone. A branch within a pairing is no divergence, even where
ranks part behind it. Cost: few readings for each statement that asks for the rank, of divergences that the whole block
has not dismissed; their budget is apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..values.evaluate import rank_dependent
from .nodes import Branch, Loop, Node, Tree, every_node
from .pointing import stands_at
from .terms import Reader, TooLarge

if TYPE_CHECKING:
    from .terms import Continuation

Alike = Callable[[Tree, "Continuation", Reader], bool]
Chain = tuple[tuple[Tree, "Continuation"], ...]
MAX_HALVES = 6  # statements on the rank from the first to the last of a pairing
MAX_STATEMENTS = 40
MAX_READ = 40_000
_NAME = "pairings"


def rejoins(chain: Chain, node: Node, quiet: Reader, alike: Alike) -> bool:
    """Whether a node stands in a pairing of some list around it; ``alike`` says whether ranks do alike in a list."""
    reader = _reader(quiet)
    try:
        for position, (nodes, k) in enumerate(chain):
            index = stands_at(nodes, k, node, chain[position - 1] if position else None)
            if index is None:
                return False
            if _is_paired(nodes, index, k, reader, alike):
                return True
    except TooLarge:
        return False
    return False


def _reader(quiet: Reader) -> Reader:
    """The reader of pairings that belongs to one of whole blocks."""
    made = quiet.by_valuation.get(_NAME)
    if made is None:
        made = Reader(
            quiet.terms, None, subgroups=quiet.subgroups, group_key=quiet.group_key, budget=MAX_READ
        )
        made.operating, made.leaving, made.held = quiet.operating, quiet.leaving, quiet.held
        quiet.by_valuation[_NAME] = made
    return made


def _is_paired(nodes: Tree, index: int, k: Continuation, reader: Reader, alike: Alike) -> bool:
    """Whether the pairings of a list hold its statement at ``index``."""
    halves = [i for i, one in enumerate(nodes) if i == index or (reader.operates(one) and _asks(one))]
    if len(halves) > MAX_STATEMENTS:
        return False
    together = k.but(fall=reader.terms.leaf("together", k.depth, True))
    start = 0
    while start < len(halves) and halves[start] <= index:
        ends = halves[start : start + MAX_HALVES]
        parts = ((end, nodes[halves[start] : end + 1]) for end in ends)
        end = next((end for end, part in parts if alike(_held(part, reader), together, reader)), None)
        if end is None:
            start += 1
            continue
        if index <= end:
            return True
        start = halves.index(end) + 1
    return False


def _held(part: Tree, reader: Reader) -> Tree:
    """A new list, which lives as long as what was read of it is remembered by its identity."""
    reader.held.append(part)
    return part


def _asks(node: Node) -> bool:
    """Whether the rank decides something in a statement."""
    return any(
        (isinstance(one, Branch) and rank_dependent(one.condition))
        or (isinstance(one, Loop) and one.count is not None and rank_dependent(one.count))
        for one in every_node([node])
    )
