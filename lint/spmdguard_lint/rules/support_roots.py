"""Roots of collectives on groups that differ between ranks: a global rank is a member of one such group only."""

from __future__ import annotations

from ..facts import lookup as facts
from ..traces.nodes import Branch
from ..values.evaluate import rank_dependent
from ..values.value import Value, alternatives
from .support_trees import Path

_SUBGROUPS = "torch.distributed.new_subgroups"


def one_for_all_groups(root: Value, group: Value, path: Path) -> bool:
    """Whether ranks of different groups all come to a call with the same number as root."""
    if root.tag != "const" or not isinstance(root.data[0], int):
        return False
    if any(isinstance(node, Branch) and rank_dependent(node.condition) for node, _ in path):
        return False
    return any(t.kind in ("rank", "local-rank") for t in group.taint) or any(map(_own, alternatives(group)))


def _own(group: Value) -> bool:
    """Whether a group was asked for as the one that this rank belongs to."""
    origin = group.data[1] if group.tag == "extobj" else None
    if not isinstance(origin, tuple) or not isinstance(origin[0], str):
        return False
    if origin[0].startswith(_SUBGROUPS):
        return bool(origin[-1] == 0)  # the first of the pair; the second is the list of all
    fact = facts.function(origin[0])
    return fact is not None and fact.event == "own-group"
