"""
# teardown-order (SPG602)

## What it does
Finds a collective, a barrier or the making of a group after the default process group was destroyed.

## Why is this bad
The call raises on every rank that gets there ("default process group has not been initialized"), or, where
only some ranks have destroyed the group, the others wait for them until the timeout.

## Example
```python
import torch.distributed as dist

def close():
    dist.destroy_process_group()
    dist.barrier()
```

## Use instead
```python
import torch.distributed as dist

def close():
    dist.barrier()
    dist.destroy_process_group()
```

## Known limits
`destroy_process_group()` without a group ends every group; the end of one group alone
(`destroy_process_group(group)`) is not followed. Where the code asks `is_initialized()` after the
destruction, it is taken to know what it does.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#shutdown
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from .support_events import counts, finding, is_default_group, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG602", name="teardown-order", severity="error", status="stable", page=__doc__)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report operations of the default group that follow its destruction."""
    for root in reading(analysis):
        if "destroy_process_group" in root.contents.ops:
            walk = _AfterDestroy()
            walk.run(root.tree, "")
            yield from walk.found.values()


class _AfterDestroy(Walk):
    """State: the operation that destroyed the default group, or "" while it lives or code asks whether."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event) and node.name == "is-initialized":
            return ""
        if not isinstance(node, Op) or not counts(node):
            return state
        if node.name == "destroy_process_group":
            return node if is_default_group(node) else state
        if node.name != "init_process_group" and isinstance(state, Op):
            self._report(node, state, where)
        return ""

    def _report(self, node: Op, destroyed: Op, where: Where | None) -> None:
        if node in self.found:
            return
        self.found[node] = finding(
            RULE,
            node,
            f"`{node.text}` comes after `{destroyed.text}`",
            "make it before the process group is destroyed: no rank can communicate any more",
            certainty="definite" if node.certainty == destroyed.certainty == "definite" else "likely",
            steps=[(destroyed.place, f"`{destroyed.text}` ends the process group")],
            where=where,
        )
