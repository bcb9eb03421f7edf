"""
# process-group-never-destroyed (SPG608)

## What it does
Finds programs that join a process group and never destroy it.

## Why is this bad
At interpreter exit the order in which threads and communicators end is left to chance: PyTorch warns, NCCL
may hang in the exit, and with gloo processes now and then abort after all work is done.

## Example
```python
import torch.distributed as dist

def main():
    dist.init_process_group("gloo")
    dist.barrier()

main()
```

## Use instead
```python
import torch.distributed as dist

def main():
    dist.init_process_group("gloo")
    dist.barrier()
    dist.destroy_process_group()

main()
```

## Known limits
A preview rule, for whole programs: a library that leaves the destruction to its user is reported as well.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#shutdown
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Op, every_node
from .support_events import finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(
    code="SPG608", name="process-group-never-destroyed", severity="warning", status="preview", page=__doc__
)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report the first init call of a project that mentions no destruction."""
    if any(module.contains(b"destroy_process_group") for module in analysis.project.all_modules):
        return
    for root in reading(analysis):
        if "init_process_group" not in root.contents.ops or {"abort", "run"} & root.contents.events:
            continue
        for node in every_node(root.tree):
            if isinstance(node, Op) and node.name == "init_process_group":
                yield finding(
                    RULE,
                    node,
                    f"the group that `{node.text}` makes is never destroyed",
                    "call `destroy_process_group()` at the end, or let `spmdguard.run` do it",
                )
                return
