"""
# hand-computed-rank (SPG702)

## What it does
Finds ranks that are computed from the number of the host and the local rank.

## Why is this bad
The sum is right as long as every host runs as many processes as this one. Where a host has fewer devices, or
the launcher counts otherwise, ranks overlap or are missing, and the group is never complete.

## Example
```python
import os

import torch
import torch.distributed as dist

def join(world_size):
    local = int(os.environ["LOCAL_RANK"])
    rank = int(os.environ["GROUP_RANK"]) * torch.cuda.device_count() + local
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist

def join():
    dist.init_process_group("nccl")
    dist.destroy_process_group()
```

## Known limits
A preview rule. Only ranks given to `init_process_group` are looked at.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import parts_of
from ..traces.nodes import Event, every_node
from .support_events import argument, finding

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG702", name="hand-computed-rank", severity="warning", status="preview", page=__doc__)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report init calls whose rank is arithmetic on host and local rank."""
    for root in analysis.roots:
        if "init" not in root.contents.events:
            continue
        for node in every_node(root.tree):
            if not isinstance(node, Event) or node.name != "init":
                continue
            rank = argument(node, 4, "rank")
            if rank is None or rank.tag != "expr" or rank.data[0] != "+":
                continue
            if any(part.tag in ("local_rank", "node_rank") for part in parts_of(rank)):
                message = f"the rank in `{node.text}` is computed by hand"
                yield finding(RULE, node, message, "leave it out: the launcher's environment has `RANK`")
