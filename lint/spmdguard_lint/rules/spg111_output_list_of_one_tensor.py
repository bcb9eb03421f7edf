"""
# output-list-of-one-tensor (SPG111)

## What it does
Finds collectives whose list of outputs holds one tensor several times, as `[torch.empty_like(x)] * world_size` does.

## Why is this bad
Every rank's part is written into the same memory. The list then has the right length, and each entry shows the part
that was written last: the results of all other ranks are lost without an error.

## Example
```python
import torch
import torch.distributed as dist


def collect(x):
    parts = [torch.empty_like(x)] * dist.get_world_size()
    dist.all_gather(parts, x)
    return parts
```

## Use instead
```python
import torch
import torch.distributed as dist


def collect(x):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return parts
```

## Known limits
Lists that are changed between their making and the call are left alone, and so are views of one tensor that overlap.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_gather
- The MPI-CorrBench collection: error class "overlapping buffers"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.nodes import Event
from .registry import rule
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(code="SPG111", name="output-list-of-one-tensor", severity="error", status="stable", page=__doc__)
HELP = "make a tensor for each rank: `[torch.empty_like(x) for _ in range(world_size)]`"
ALIASED = "aliased-output"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Calls that the interpreter has marked."""
    for root in analysis.roots:
        if ALIASED not in root.contents.events:
            continue
        for step in root.steps:
            node = step.node
            if isinstance(node, Event) and node.name == ALIASED:
                message = f"the entries of the output list of `{node.text}` are one tensor"
                yield finding_at(RULE, node, message, HELP, certainty="definite", calls=step.calls)
