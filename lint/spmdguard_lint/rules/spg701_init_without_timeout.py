"""
# init-without-timeout (SPG701)

## What it does
Finds `init_process_group` calls without a timeout.

## Why is this bad
When a rank fails, the others wait for the default timeout: ten minutes with NCCL, thirty with other backends.
It is too long for a step of a second, and too short for an hour of preparation on rank 0.

## Example
```python
import torch.distributed as dist

dist.init_process_group("gloo")
dist.destroy_process_group()
```

## Use instead
```python
from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(minutes=2))
dist.destroy_process_group()
```

## Known limits
A preview rule of severity `info`.

## Fix safety
Safe where the backend is written down as `"nccl"`, `"gloo"` or `"mpi"`: the fix spells out the timeout that applies
anyway, 10 minutes for NCCL and 30 for the others, to be adapted by the author. Unsafe for other backends.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Event, every_node
from .support_events import argument, finding

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(
    code="SPG701", name="init-without-timeout", severity="info", status="preview", page=__doc__, fix="safe"
)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report init calls that leave the timeout to the default."""
    for root in analysis.roots:
        if "init" not in root.contents.events:
            continue
        for node in every_node(root.tree):
            if not isinstance(node, Event) or node.name != "init":
                continue
            if node.call.startswith("torch.distributed.") and argument(node, 2, "timeout") is None:
                message = f"`{node.text}` waits for the default timeout when a rank fails"
                yield finding(RULE, node, message, "pass a `timeout` that fits a step of this job")
