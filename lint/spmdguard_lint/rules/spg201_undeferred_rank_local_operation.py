"""
# undeferred-rank-local-operation (SPG201)

## What it does
Finds operations on files, the network and trackers that stand between collectives and whose failure nothing
keeps for later.

## Why is this bad
Each of them may fail on one rank alone: a full disk, a lost connection, a tracker that is down. The rank
raises and leaves; the others enter the next collective and wait for it until the timeout, and then report a
communication error.

## Example
```python
import torch.distributed as dist
from spmdguard import has_deferred_error, sync_should_stop

def step(grad, path):
    dist.all_reduce(grad)
    with open(path, "a") as log:
        log.write("done")
    return sync_should_stop(has_deferred_error())
```

## Use instead
```python
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, sync_should_stop

def step(grad, path):
    dist.all_reduce(grad)
    with deferring("log"):
        with open(path, "a") as log:
            log.write("done")
    return sync_should_stop(has_deferred_error())
```

## Known limits
Reported where the project uses spmdguard; elsewhere the findings are of severity `info`, shown when the rule
is selected by name. An operation inside a `try` that catches its errors is taken to be cared for, and so is
what runs before the first collective.

## Fix safety
Unsafe: after an error the rank goes on, where before it left. The fix puts the statements into
`with deferring("..."):`. There is none where something later needs what they assign, where they return, or where
the project does not use spmdguard: an error that is kept must also be asked for.

## References
- `spmdguard.rank_local`, `spmdguard.try_or_defer`, `spmdguard.deferring`
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from ..values.value import Place
from .support_events import cared_for, counts, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(
    code="SPG201",
    name="undeferred-rank-local-operation",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
_OWN = frozenset({"sync-stop", "raise-if-deferred", "deferred-error", "defer-error", "defer"})
_SETUP = frozenset({"init_process_group", "DistributedDataParallel", "broadcast_object_list", "handshake"})
_BEFORE, _MET = "before", "met"
MAX_CALLS = 5


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report regions between collectives in which one rank alone may fail."""
    guarded = any(root.contents.defers or root.contents.events & _OWN for root in analysis.roots)
    for root in reading(analysis):
        if root.contents.io and root.contents.ops:
            walk = _Regions()
            walk.run(root.tree, _BEFORE)
            for found in walk.findings():
                yield found if guarded else replace(found, severity="info")


class _Regions(Walk):
    """State: no collective yet, or none of interest since the last one, or what may have failed since."""

    def __init__(self) -> None:
        super().__init__()
        self.regions: dict[Node, tuple[set[Node], Op, Where | None]] = {}
        self.ways: dict[Node, Where | None] = {}
        self.shared: set[Place] = set()

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op) and counts(node):
            self.shared.add(node.place)
            if isinstance(state, tuple) and node.name != "destroy_process_group":
                self._close(state, node)
            return _BEFORE if node.name in _SETUP and state == _BEFORE else _MET
        if not isinstance(node, Fallible) or not node.io or node.place in self.shared:
            return state
        if state != _BEFORE and not cared_for(where):
            self.ways.setdefault(node, where)
            if not isinstance(state, tuple):
                return (node,)
            return state if len(state) >= MAX_CALLS else (*state, node)
        return state

    def _close(self, failed: tuple[Node, ...], operation: Op) -> None:
        first = failed[0]
        known = self.regions.setdefault(first, (set(), operation, self.ways.get(first)))
        known[0].update(failed)

    def findings(self) -> Iterator[Finding]:
        """One per region, at its first call."""
        reported: set[Place] = set()
        ordered = sorted(self.regions.items(), key=lambda item: item[0].place)
        for first, (nodes, operation, where) in ordered:
            if first.place in reported:
                continue
            reported.update(node.place for node in nodes)
            others = sorted({(n.place, getattr(n, "text", "")) for n in nodes if n.place != first.place})
            steps = [(place, f"`{text}` may fail as well") for place, text in others[:MAX_CALLS]]
            steps.append((operation.place, f"`{operation.text}` is where the other ranks wait"))
            text = getattr(first, "text", "")
            yield finding(
                RULE,
                first,
                f"`{text}` may fail on one rank alone, and `{operation.text}` follows on the others",
                "keep its error for later: `@rank_local`, `try_or_defer` or `with deferring(...)`",
                steps=steps,
                where=where,
                marks=[("call", node) for node in sorted(nodes, key=lambda node: node.place)],
            )
