"""
# group-membership-mismatch (SPG106)

## What it does
Finds process groups that only some ranks make, groups made of other ranks on each rank, collectives
on a group that only some of its members call (also where the members name another group in the same call, be it one of
the same ranks), and those that only ranks outside the group call.

## Why is this bad
`new_group` is called by all ranks of the job, members or not, in the same order: it is how ranks agree on
what the group is. Called inside `if rank in members:` it waits for the ranks outside. A collective on a
finished group waits for its members in the same way as one on the default group waits for everybody.

## Example
```python
import torch.distributed as dist


def leaders():
    members = [0, 1]
    if dist.get_rank() in members:
        return dist.new_group(members)
    return None
```

## Use instead
```python
import torch.distributed as dist


def leaders():
    members = [0, 1]
    group = dist.new_group(members)
    return group if dist.get_rank() in members else None
```

`new_group(..., use_local_synchronization=True)` is the form that only members call.

## Known limits
The members of a group are known where the list of ranks is written out or computed from rank and world
size. For other groups a collective under a condition on the rank is taken to be guarded by membership,
since it nearly always is.

## Fix safety
No fix yet.

## References
-
  [torch.distributed.new_group](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.divergence import variance
from ..traces.judged import is_default_group
from ..traces.nodes import Branch, Op
from ..values.evaluate import UNKNOWN, Valuation, evaluate, rank_dependent
from .registry import rule
from .support import from_divergence, operation_text
from .support_claims import NEW_GROUP, RANK_KINDS, claimed, members_part, where
from .support_trees import WORLDS, Path, chosen, everybody_in, finding_at, passed, reaching

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Value

RULE = rule(code="SPG106", name="group-membership-mismatch", severity="error", status="stable", page=__doc__)
_OWN = (*RANK_KINDS, "random", "environment", "time")
MAKE = "make the group on every rank, in the same order, and use it only where the rank is a member"
OTHERS = "call it on the group of the ranks that reach it"
SAME = "name one group on all of its ranks"
CALL = "let every member of the group make the call"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Groups made by some ranks, made of different ranks, or used by some of their members."""
    for divergence in claimed(analysis.divergences, RULE.code):
        operation = operation_text(divergence)
        if divergence.operation is not None and divergence.operation.name in NEW_GROUP:
            message = f"`{operation}` is called only {where(divergence)}; making a group takes every rank"
            yield from_divergence(RULE, divergence, message, MAKE)
        elif members_part(divergence):
            condition = divergence.condition_text
            message = f"members of the group disagree on `{condition}`: not all of them call `{operation}`"
            divergence.subgroup = False
            yield from_divergence(RULE, divergence, message, CALL)
    yield from _unequal_groups(analysis)
    yield from _groups_of_others(analysis)
    yield from _groups_by_rank(analysis)


def _groups_by_rank(analysis: Analysis) -> Iterable[Finding]:
    """Calls for which one rank names a group whose members name another one."""
    for root in analysis.roots:
        for step in root.steps:
            op = step.node
            if not isinstance(op, Op) or op.kind != "collective" or op.group is None or op.group.tag != "ite":
                continue
            if rank_dependent(op.group) and _apart(op.group, (*step.path, *passed(root.tree, step))):
                message = f"ranks call `{op.text}` on other groups, which have members in common"
                taints = variance(op.group.taint)[:2]
                yield finding_at(
                    RULE, op, message, SAME, certainty="definite", taints=taints, calls=step.calls
                )


def _apart(group: Value, path: Path) -> bool:
    """Whether a member of the group that a rank names comes to the call, too, and names another group."""
    for world, local in ((2, 2), (4, 2), (8, 4)):
        named: dict[int, tuple[object, tuple[int, ...]]] = {}
        for rank in range(world):
            at = Valuation(rank, world, local)
            if reaching(path, at):
                one = chosen(group, at)
                members = None if one is None else everybody_in(one, at)
                if one is None or members is None or max(members, default=0) >= world:
                    break
                named[rank] = (None if is_default_group(one) else one.key, members)
        else:
            if any(
                other in named and named[other][0] != key
                for rank, (key, members) in named.items()
                for other in (members if rank in members else ())
            ):
                return True
    return False


def _groups_of_others(analysis: Analysis) -> Iterable[Finding]:
    """Operations on a finished group that none of its members reaches, and other ranks do."""
    for root in analysis.roots:
        for step in root.steps:
            op = step.node
            if not isinstance(op, Op) or op.kind != "collective" or op.group is None:
                continue
            if (
                op.group.tag == "extobj"
                and op.group.data[2] is not None
                and _of_others(op.group.data[2], step.path)
            ):
                message = f"none of the ranks that reach `{op.text}` is a member of its group"
                yield finding_at(RULE, op, message, OTHERS, certainty="definite", calls=step.calls)


def _of_others(listed: Value, path: Path) -> bool:
    """Whether only ranks outside a list of members come to the end of a path, in every world that has them."""
    if not any(isinstance(n, Branch) and rank_dependent(n.condition) for n, _ in path):
        return False
    met = False
    for world, local in ((4, 2), (8, 4)):
        for rank in range(world):
            at = Valuation(rank, world, local)
            members = evaluate(listed, at)
            if not isinstance(members, (tuple, list, range)) or not all(isinstance(m, int) for m in members):
                return False
            if max(members, default=0) >= world:
                break
            if reaching(path, at):
                if rank in members:
                    return False
                met = True
    return met


def _unequal_groups(analysis: Analysis) -> Iterable[Finding]:
    """Calls that make a group of other ranks on each rank."""
    for root in analysis.roots:
        if root.contents.ops.isdisjoint(NEW_GROUP):
            continue
        for step in root.steps:
            op = step.node
            if not isinstance(op, Op) or op.name not in NEW_GROUP:
                continue
            for value in op.invariant:
                telling = [t for t in variance(value.taint) if t.kind in _OWN and t.certainty != "possible"]
                if (telling or rank_dependent(value)) and _overlap(value, step.path):
                    reason = (
                        "the rank" if not telling or telling[0].kind in RANK_KINDS else "this process alone"
                    )
                    message = f"`{op.text}` makes another group on each rank: its ranks depend on {reason}"
                    yield finding_at(
                        RULE,
                        op,
                        message,
                        MAKE,
                        taints=variance(value.taint)[:2],
                        calls=step.calls,
                    )


def _overlap(value: Value, path: Path) -> bool:
    """Whether ranks that reach the call ask for different groups (unknown values are taken to differ)."""
    for world, local in WORLDS:
        seen = set()
        for rank in range(world):
            at = Valuation(rank, world, local)
            if reaching(path, at):
                result = evaluate(value, at)
                if isinstance(result, (tuple, list, range)) and len(result) == 1:
                    continue  # a group of one needs nobody else
                seen.add(rank if result is UNKNOWN else repr(result))
        if len(seen) > 1:
            return True
    return False
