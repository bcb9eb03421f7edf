"""
# collective-order-differs (SPG103)

## What it does
Finds branches on the rank whose arms both call collectives, but not the same ones in the same order.

## Why is this bad
Collectives are matched by order, not by name. Rank 0's `broadcast` meets rank 1's `all_reduce`: NCCL
hangs or mixes up the data, gloo reports a size mismatch at best. The number of calls may even be equal,
so that everything looks balanced on reading.

## Example
```python
import torch.distributed as dist


def exchange(x, y):
    if dist.get_rank() == 0:
        dist.broadcast(x, src=0)
        dist.all_reduce(y)
    else:
        dist.all_reduce(y)
        dist.broadcast(x, src=0)
```

## Use instead
```python
import torch.distributed as dist


def exchange(x, y):
    dist.broadcast(x, src=0)
    dist.all_reduce(y)
```

## Known limits
Operations are compared by name and group. Different buffers of the same operation are the same to this
rule; roots, reduce operators and sizes that differ between ranks are SPG107. On groups whose members are not known,
arms that make the same calls in another order are reported, other arms with certainty `possible`. A loop
counts as one step, so two arms with loops of unequal length are reported only where the lengths are known.

## Fix safety
No fix: which order is meant cannot be known.

## References
- `dist.monitored_barrier` and `TORCH_DISTRIBUTED_DEBUG=DETAIL` report such mismatches at run time
- Titanium: A. Aiken and D. Gay, "Barrier inference", POPL 1998
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.nodes import Branch, every_node
from .registry import rule
from .support import from_divergence, operation_text
from .support_claims import asks, claimed

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..traces.divergence import Divergence

RULE = rule(code="SPG103", name="collective-order-differs", severity="error", status="stable", page=__doc__)
HELP = "call the same collectives in the same order in both arms, or once behind the branch"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations in both arms of a branch on the rank, with unequal traces."""
    for divergence in claimed(analysis.divergences, RULE.code):
        calls = "ask the trainer for something else" if asks(divergence) else "call other collectives"
        message = (
            f"ranks where `{divergence.condition_text}` holds {calls} than the rest, "
            f"from `{divergence.text}` on"
        )
        if divergence.form == "with":
            operation = operation_text(divergence)
            does = f"only one of the two calls `{operation}`"
            if _of_the_block(divergence):
                does = f"under only one of the two `{operation}` exchanges with the other ranks"
            message = f"`with {divergence.condition_text}` enters another manager on some ranks, and {does}"
        yield from_divergence(RULE, divergence, message, HELP)


def _of_the_block(divergence: Divergence) -> bool:
    """Whether the operation is one of the block itself, which runs under either manager."""
    node, operation = divergence.node, divergence.operation
    if not isinstance(node, Branch) or operation is None:
        return False
    arms = (node.then, node.orelse)
    return all(any(inner.place == operation.place for inner in every_node(arm)) for arm in arms)
