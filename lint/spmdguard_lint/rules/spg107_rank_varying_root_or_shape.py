"""
# rank-varying-root-or-shape (SPG107)

## What it does
Finds collectives whose root (`src`, `dst`) or reduce operator differs between the ranks that call it.

## Why is this bad
A root is an agreement: with `dst=rank` every rank believes that it is the one to receive, and nobody
sends. With another operator on each rank the result is computed in part by one and in part by the other.
Neither is checked at run time: the call hangs, or returns a wrong number without a word.

## Example
```python
import torch.distributed as dist


def collect(x):
    me = dist.get_rank()
    dist.reduce(x, dst=me)
```

## Use instead
```python
import torch.distributed as dist


def collect(x):
    dist.reduce(x, dst=0)
```

A loop in which each rank is the root in turn is right:

```python
import torch.distributed as dist


def exchange(buffers):
    for owner in range(dist.get_world_size()):
        dist.broadcast(buffers[owner], src=owner)
```

## Known limits
Roots within sub-groups legitimately differ from group to group, and are judged only where a rank names
itself. A root that a rank computes from its own data, the clock or a random number is of certainty
`likely`. Shapes are not compared yet.

## Fix safety
No fix: only the author knows the root.

## References
- [torch.distributed.reduce](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.reduce)
- `dist.broadcast_object_list([winner], src=0)` shares a root found at run time
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Certainty, Finding
from ..traces.divergence import group_key, variance
from ..traces.nodes import Branch, Op
from ..values.evaluate import UNKNOWN, Valuation, evaluate, rank_dependent
from .registry import rule
from .support_trees import WORLDS, Path, Step, every_node, finding_at, reaching, steps

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Value

RULE = rule(code="SPG107", name="rank-varying-root-or-shape", severity="error", status="stable", page=__doc__)
HELP = "every rank must name the same root and the same operator: a constant, or a value shared before"
_KINDS = ("rank", "group-rank", "time", "random", "order", "data", "filesystem")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations whose root or operator differs between the ranks that reach them."""
    for root in analysis.roots:
        if not root.contents.ops:
            continue
        for step in steps(root.tree):
            if isinstance(step.node, Op) and step.node.kind == "collective":
                yield from _judge(step, step.node)


def _judge(step: Step, op: Op) -> Iterable[Finding]:
    named = [("root", op.root)] if op.root is not None else []
    for word, value in (*named, *(("operator or other shared argument", v) for v in op.invariant)):
        certainty = varies(value, step.path, subgroup=group_key(op) is not None)
        if certainty is None:
            continue
        message = f"the {word} of `{op.text}` differs between the ranks that call it"
        yield finding_at(
            RULE, op, message, HELP, certainty=certainty, taints=variance(value.taint)[:2], calls=step.calls
        )
        return


def varies(value: Value, path: Path, *, subgroup: bool = False) -> Certainty | None:
    """Whether ranks that reach the end of a path have different values; None where they agree."""
    taints = [t for t in variance(value.taint) if t.kind in _KINDS and t.certainty != "possible"]
    if not taints:
        return None
    if not rank_dependent(value):
        return None if subgroup else "likely"
    if subgroup and value.tag != "rank":
        return None
    if _by_roles(path):
        return None
    unknown = False
    for world, local in WORLDS:
        seen = set()
        for rank in range(world):
            at = Valuation(rank, world, local)
            if not reaching(path, at):
                continue
            result = evaluate(value, at)
            if result is UNKNOWN:
                unknown = True
            else:
                seen.add(repr(result))
        if len(seen) > 1:
            return "definite"
    return "likely" if unknown and not subgroup and not any(t.kind == "group-rank" for t in taints) else None


def _by_roles(path: Path) -> bool:
    """Whether the other arm of some branch around makes a collective call too: the ranks' roles differ there."""
    for node, part in path:
        if isinstance(node, Branch) and not rank_dependent(node.condition):
            other = node.orelse if part == "then" else node.then
            if any(isinstance(inner, Op) and inner.kind == "collective" for inner in every_node(other)):
                return True
    return False
