"""
# collective-in-background-thread (SPG108)

## What it does
Finds collectives of the default group that a background thread calls.

## Why is this bad
Collectives are matched in the order in which a process starts them. A thread starts its own at a moment
that the scheduler chooses, on each rank another: on rank 0 the thread's `all_gather` comes before the
main thread's `all_reduce`, on rank 1 after it. Then each waits for the other, or the two exchange their
data.

## Example
```python
from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist


def collect(rows, step):
    dist.all_gather_object(rows, step)


def train(steps, grad):
    pool = ThreadPoolExecutor(max_workers=1)
    for step in range(steps):
        dist.all_reduce(grad)
        pool.submit(collect, [None] * dist.get_world_size(), step)
```

## Use instead
Call the collective in the main thread, and hand the thread what is local:

```python
from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist


def train(steps, grad, write):
    pool = ThreadPoolExecutor(max_workers=1)
    for step in range(steps):
        dist.all_reduce(grad)
        rows = [None] * dist.get_world_size()
        dist.all_gather_object(rows, step)
        pool.submit(write, rows)
```

Where the thread has to communicate, give it a process group of its own: groups do not wait for one another.

## Known limits
Threads are followed where they are made with a function of the project. Collectives on another group
than the default one are taken to be the thread's own.

## Fix safety
No fix.

## References
- [torch.distributed: using several process groups at a
  time](https://docs.pytorch.org/docs/stable/distributed.html#groups)
- `torch.distributed.checkpoint.async_save` takes a `process_group` for this reason
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding, TrailStep
from ..traces.nodes import Call, Op, Region
from .registry import rule
from .support import site
from .support_trees import finding_at, steps, waits

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG108", name="collective-in-background-thread", severity="error", status="stable", page=__doc__
)
HELP = "call it in the main thread, or give the thread a process group of its own"


def check(analysis: Analysis) -> Iterable[Finding]:
    """The first operation of each thread that is started, told where it stands."""
    for root in analysis.roots:
        if "thread" not in root.contents.regions:
            continue
        for step in steps(root.tree):
            thread = step.node
            if not isinstance(thread, Region) or thread.kind != "thread":
                continue
            for inner in steps(thread.body):
                if isinstance(inner.node, Op) and waits(inner.node):
                    yield _finding(thread, inner.node, [*step.calls, *inner.calls])
                    break


def _finding(thread: Region, op: Op, calls: Iterable[Call]) -> Finding:
    message = (
        f"`{op.text}` runs in another thread (`{thread.text}`), "
        "in no fixed order with the main thread's collectives"
    )
    finding = finding_at(RULE, op, message, HELP, calls=calls)
    start = TrailStep(site(thread.place), f"`{thread.text}` starts the thread")
    return dataclasses.replace(finding, trail=(start, *finding.trail))
