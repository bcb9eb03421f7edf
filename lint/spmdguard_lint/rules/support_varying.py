"""Whether the ranks that come to a place have one value there, or each its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..traces.divergence import variance
from ..traces.nodes import Branch, Op, every_node
from ..values.evaluate import UNKNOWN, Valuation, evaluate, rank_dependent, truth
from .support_trees import WORLDS, Path, reaching

if TYPE_CHECKING:
    from ..model import Certainty
    from ..values.value import Value

KINDS = ("rank", "group-rank", "time", "random", "order", "data", "filesystem", "environment")


def varies(
    value: Value, path: Path, *, subgroup: bool = False, kinds: tuple[str, ...] = KINDS
) -> Certainty | None:
    """Whether ranks that reach the end of a path have different values; None where they agree."""
    taints = [t for t in variance(value.taint) if t.kind in kinds and t.certainty != "possible"]
    if not taints:
        return None
    if not rank_dependent(value):
        return None if subgroup else "likely"
    if subgroup and value.tag != "rank":
        return None
    if _by_roles(path) or _is_equal(value, path):
        return None
    unknown = False
    for world, local in WORLDS:
        seen = set()
        for rank in range(world):
            at = Valuation(rank, world, local)
            if not reaching(path, at):
                continue
            result = _known(value, at)
            if result is UNKNOWN:
                unknown = True
            else:
                seen.add(repr(result))
        if len(seen) > 1:
            return "definite"
    return "likely" if unknown and not subgroup and not any(t.kind == "group-rank" for t in taints) else None


def _known(value: Value, at: Valuation) -> object:
    """What a value is on one rank; what the library names (``ReduceOp.MAX``) is known by its name."""
    while value.tag == "ite" and (chosen := truth(value.data[0], at)) is not None:
        value = value.data[1 if chosen else 2]
    return value.data[0] if value.tag == "ext" else evaluate(value, at)


def _is_equal(value: Value, path: Path) -> bool:
    """Whether only ranks come here on which a value is equal to one that all share (``if rank == root``)."""
    for node, part in path:
        if isinstance(node, Branch) and node.condition.tag == "expr" and part in ("then", "orelse"):
            operator, operands = node.condition.data
            others = [one for one in operands if one.key != value.key]
            if operator == ("==" if part == "then" else "!=") and len(others) == 1 and not others[0].taint:
                return True
    return False


def _by_roles(path: Path) -> bool:
    """Whether the other arm of some branch around makes a collective call too: the ranks' roles differ there."""
    for node, part in path:
        if isinstance(node, Branch) and not rank_dependent(node.condition):
            other = node.orelse if part == "then" else node.then
            if any(isinstance(inner, Op) and inner.kind == "collective" for inner in every_node(other)):
                return True
    return False
