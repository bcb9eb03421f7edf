"""
# missing-closing-barrier (SPG504)

## What it does
Finds checkpoints whose last steps one rank takes alone after a collective save, with no barrier behind them.

## Why is this bad
The other ranks go on while the checkpoint is still being renamed or described. If they load it, remove older
ones, or end the job, they find it incomplete.

## Example
```python
import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

def save(state, work, final):
    dcp.save(state, checkpoint_id=work)
    if dist.get_rank() == 0:
        os.replace(work, final)
```

## Use instead
```python
import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

def save(state, work, final):
    dcp.save(state, checkpoint_id=work)
    if dist.get_rank() == 0:
        os.replace(work, final)
    dist.barrier()
```

## Known limits
A preview rule: the next collective of the caller may be barrier enough. A use of the files in between is
SPG503.

## Fix safety
No fix.

## References
- `spmdguard.save_checkpoint`
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import guarded_by_rank
from ..traces.nodes import Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from .support_events import counts, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG504", name="missing-closing-barrier", severity="warning", status="preview", page=__doc__)
_STEPS = frozenset({"rename", "write", "mkdir", "remove", "open"})
_SAVED = "saved"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report last steps of a checkpoint that no barrier follows."""
    for root in reading(analysis):
        contents = root.contents
        if "checkpoint-save" in contents.events and contents.by_rank and contents.events & _STEPS:
            walk = _Endings()
            flow = walk.run(root.tree, "")
            left = {
                p.state for kind in ("fall", "ret") for p in flow.get(kind, ()) if isinstance(p.state, Event)
            }
            for node in sorted(left, key=lambda event: event.place):
                yield finding(
                    RULE,
                    node,
                    f"`{node.text}` ends the checkpoint on one rank, and the others do not wait for it",
                    "put a barrier behind it",
                    where=walk.ways.get(node),
                )


class _Endings(Walk):
    """State: nothing saved, saved by all, or the last step that one rank took since."""

    def __init__(self) -> None:
        super().__init__()
        self.saves: set[object] = set()
        self.ways: dict[Node, Where | None] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op):
            self.saves.add(node.place)
            return "" if counts(node) else state
        if isinstance(node, Event):
            if node.name == "checkpoint-save" and node.place in self.saves:
                return _SAVED
            if node.name in _STEPS and state != "" and guarded_by_rank(where):
                self.ways.setdefault(node, where)
                return node
        return state
