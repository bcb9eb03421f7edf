"""Which group a call makes: ranks that make groups of other members at the same time wait for one another in vain."""

from __future__ import annotations

from collections.abc import Hashable

from ..values.evaluate import Valuation, evaluate, rank_dependent
from .nodes import Op

MAKING = frozenset({"new_group"})
_ANYWHERE = Valuation(0, 4)


def made_of(op: Op, at: Valuation | None) -> Hashable:
    """The members of the group that an operation makes, where they are written out or follow from the world size.

    None for other operations, and where the rank has a say: another rule's matter.
    """
    if op.name not in MAKING or not op.invariant:
        return None
    listed = op.invariant[0]
    if rank_dependent(listed):
        return None
    members = evaluate(listed, at or _ANYWHERE)
    if not isinstance(members, (list, tuple, range)) or not all(isinstance(rank, int) for rank in members):
        return None
    return tuple(members)
