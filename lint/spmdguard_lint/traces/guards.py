"""Tests that send ranks away at once: what follows one is what its other arm would hold.

``if rank != 0: return`` and then a block says the same as ``if rank == 0:`` around it. A raise in the block is decided
by the test, and is a matter of it, while it would not be one of a branch that merely stands before.
"""

from __future__ import annotations

from dataclasses import replace

from ..values.evaluate import rank_dependent
from .judged import Candidate
from .nodes import Branch, Jump, Op, Tree, every_node
from .pointing import telling_jump
from .terms import Reader

_AWAY = frozenset({"return", "continue", "break"})


def around_the_rest(candidate: Candidate, node: Branch, quiet: Reader) -> Candidate:
    """The candidate with a branch whose other arm holds what follows, where that raises and meets nobody.

    What a reader has read it remembers by identity: the new lists live as long as it does.
    """
    block, k = candidate.chain[0] if candidate.chain else ([], candidate.k)
    if node not in block or not rank_dependent(node.condition):
        return candidate
    index = block.index(node)
    rest = block[index + 1 :]
    if _sends_away(node.then) is _sends_away(node.orelse) or _has_ops([node, *rest]):
        return candidate
    jump, _, precondition = telling_jump(rest, candidate.k)
    if jump is None or jump.kind != "raise" or precondition:
        return candidate
    then, orelse = node.then, node.orelse
    if _sends_away(then):
        orelse = [*orelse, *rest]
    else:
        then = [*then, *rest]
    whole = Branch(node.place, node.condition, then, orelse, node.form, node.text)
    around = [*block[:index], whole]
    quiet.held += (then, orelse, around)
    return replace(candidate, node=whole, chain=((around, k), *candidate.chain[1:]))


def _sends_away(arm: Tree) -> bool:
    return bool(arm) and isinstance(arm[-1], Jump) and arm[-1].kind in _AWAY


def _has_ops(nodes: Tree) -> bool:
    return any(isinstance(node, Op) for node in every_node(nodes))
