"""
# unsuppressed-destroy-in-handler (SPG605)

## What it does
Finds `destroy_process_group` in an `except` clause, or in the `__exit__` of a context manager, without
anything that keeps its own failure from hiding the error that is being handled.

## Why is this bad
The rank is there because something failed, often the communication itself. Destroying the group can then
raise, and the exception that started it all is only the context of the one that is seen; it can also block,
and then nothing is seen at all. The error must be printed first, and teardown must not replace it.

## Example
```python
import torch.distributed as dist

def main(train):
    dist.init_process_group("nccl")
    try:
        train()
        dist.barrier()
    except Exception:
        dist.destroy_process_group()
        raise
    dist.destroy_process_group()
```

## Use instead
```python
import contextlib

import torch.distributed as dist

def main(train):
    dist.init_process_group("nccl")
    try:
        train()
        dist.barrier()
    except Exception:
        with contextlib.suppress(Exception):
            dist.destroy_process_group()
        raise
    dist.destroy_process_group()
```

or `spmdguard.run(train)`, which writes the error first and bounds the teardown.

## Known limits
Destruction in a `finally` block is reported as SPG206 where a rank may come there alone.

## Fix safety
Safe: `with suppress(Exception):` around the call acts only where an error is on its way already.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#shutdown
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.contents import contents_of
from ..traces.nodes import Branch, Event, Fallible, Node, Op, Region, Try
from ..traces.paths import catches_all
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.evaluate import Valuation, truth
from .support_events import finding, is_default_group, reading
from .support_exits import exception_there

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(
    code="SPG605",
    name="unsuppressed-destroy-in-handler",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="safe",
)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report destructions in except clauses whose own failure would hide the error."""
    for root in reading(analysis):
        if "destroy_process_group" in root.contents.ops:
            walk = _Destructions()
            walk.run(root.tree, "")
            yield from walk.found.values()


class _Destructions(Walk):
    """Looks at where the default group is destroyed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        """An ``__exit__`` that asks for the exception knows that there is one."""
        if not any(w.part == "unwinding" for w in around(where)):
            return state
        known = truth(node.condition, Valuation(0, 2, atoms=exception_there(node.condition)))
        return None if known is not None and known is not holds else state

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op) and node.name == "destroy_process_group" and is_default_group(node):
            clause = _clause(where)
            if clause is not None and node not in self.found:
                self.found[node] = _report(node, clause, where)
        return state


def _clause(where: Where | None) -> Where | None:
    """The except clause around a node, unless the node's own exceptions are kept from leaving it."""
    for w in around(where):
        if isinstance(w.node, Region) and w.node.kind == "deferred":
            return None
        if not isinstance(w.node, Try):
            continue
        if w.part == "body" and any(map(catches_all, w.node.handlers)):
            return None
        if w.part == "unwinding" and w.node.form == "with":
            return w if fails_alone(w.node) else None
        if w.part == "handler":
            return w if contents_of(w.node.body).ops - {"init_process_group"} else None
    return None


def fails_alone(node: Try) -> bool:
    """Whether the block of a with statement communicates and may fail on one rank."""
    contents = contents_of(node.body)
    return contents.io and bool(contents.ops - {"init_process_group"})


def _report(node: Op, clause: Where, where: Where | None) -> Finding:
    caught = f"`{clause.handler.text}`" if clause.handler is not None else "the exit of a with block"
    return finding(
        RULE,
        node,
        f"`{node.text}` in {caught} may raise or block, and hide the error that is handled",
        "wrap it in `contextlib.suppress(Exception)`, once the error is written, or use `spmdguard.run`",
        steps=[(clause.node.place, "the error that matters leaves this block")],
        where=where,
    )
