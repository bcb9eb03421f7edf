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
Groups of their own (`destroy_process_group(group)`) are not followed. A test of `is_initialized()` in front
of the call is taken into account, a flag of your own is only where its value is seen.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#shutdown
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import parts_of
from ..traces.nodes import Branch, Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from ..values.evaluate import Valuation, truth
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
    """State: the operation that destroyed the default group, or "" while it lives."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if not isinstance(node, Op) or not counts(node) or not is_default_group(node):
            return state
        if node.name == "destroy_process_group":
            return node
        if node.name != "init_process_group" and isinstance(state, Op):
            self._report(node, state, where)
        return ""

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        if not isinstance(state, Op):
            return state
        gone: dict[Hashable, bool] = {
            part.key: False for part in parts_of(node.condition) if _asks_for_group(part.data)
        }
        known = truth(node.condition, Valuation(0, 2, atoms=gone)) if gone else None
        return None if known is not None and known is not holds else state

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


def _asks_for_group(data: tuple[object, ...]) -> bool:
    """Whether a symbol is the answer of ``is_initialized()``."""
    name = data[0] if data else None
    return isinstance(name, tuple) and bool(name) and str(name[0]).endswith("is_initialized")
