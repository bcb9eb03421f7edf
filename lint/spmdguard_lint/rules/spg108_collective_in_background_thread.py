"""
# collective-in-background-thread (SPG108)

## What it does
Finds collectives of the default group that a background thread calls, and barriers and collectives of objects that come
while the thread of `dcp.async_save` may still be communicating on that group.

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
than the default one are taken to be the thread's own. Behind an `async_save` only barriers and collectives of objects
count, which take the same backend (for tensors in the CPU's memory) as the save, and only up to the end of the loop's
round.

## Fix safety
No fix.

## References
- [torch.distributed: using several process groups at a
  time](https://docs.pytorch.org/docs/stable/distributed.html#groups)
- `torch.distributed.checkpoint.async_save` takes a `process_group` for this reason
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from ..model import Finding, TrailStep
from ..traces.nodes import Call, Event, Fallible, Loop, Op, Region
from ..traces.sequence import Walk
from ..traces.where import Where
from .registry import rule
from .support import site
from .support_events import finding, is_default_group, reading
from .support_futures import ASYNC_SAVE, asks
from .support_trees import finding_at, steps, waits

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG108", name="collective-in-background-thread", severity="error", status="stable", page=__doc__
)
HELP = "call it in the main thread, or give the thread a process group of its own"
_OF_THE_CPU = frozenset(
    {"barrier", "monitored_barrier", "all_gather_object", "gather_object", "broadcast_object_list"}
)


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
    for root in reading(analysis):
        if ASYNC_SAVE in root.contents.ops and root.contents.ops & _OF_THE_CPU:
            walk = _Saves()
            walk.run(root.tree, "")
            yield from walk.found.values()


class _Saves(Walk):
    """State: the save on the default group that may still be communicating, or ""."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Op, Finding] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if asks(node):
            return ""
        if isinstance(node, Event) and isinstance(state, Op) and node.place == state.place:
            return (
                "" if "async_checkpointer_type" in node.keywords else state
            )  # a process with groups of its own
        if not isinstance(node, Op) or not is_default_group(node):
            return state
        if node.name == ASYNC_SAVE:
            return node
        if node.name in _OF_THE_CPU and isinstance(state, Op):
            self.found[node] = finding(
                RULE,
                node,
                f"`{node.text}` comes while the thread of `{state.text}` may be in a collective of the same group",
                "give `async_save` a `process_group` of its own (gloo), or wait for its future first",
                steps=[(state.place, f"`{state.text}` goes on in another thread")],
                where=where,
            )
            return ""
        return state

    def enter(self, node: Call, state: Hashable, where: Where | None) -> Hashable:
        """A function whose name says that it waits."""
        return "" if asks(node) else state

    def back(self, node: Loop, state: Hashable, where: Where | None) -> Hashable:
        """The next round mostly begins with waiting, where there is something to wait for."""
        return ""


def _finding(thread: Region, op: Op, calls: Iterable[Call]) -> Finding:
    message = (
        f"`{op.text}` runs in another thread (`{thread.text}`), "
        "in no fixed order with the main thread's collectives"
    )
    found = finding_at(RULE, op, message, HELP, calls=calls)
    start = TrailStep(site(thread.place), f"`{thread.text}` starts the thread")
    return dataclasses.replace(found, trail=(start, *found.trail))
