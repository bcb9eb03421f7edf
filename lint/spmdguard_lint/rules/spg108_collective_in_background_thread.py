"""
# collective-in-background-thread (SPG108)

## What it does
Finds collectives of the default group that a background thread calls, and barriers, collectives of objects and
collectives of tensors in the CPU's memory that come while the thread of `dcp.async_save` may still be communicating on
that group.

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
Threads are followed where they are made with a function of the project. One that its maker waits for before it calls
anything else (`t.start()`, `t.join()`; `pool.submit(f).result()`) is read as a call. Collectives on another group
than the default one are taken to be the thread's own. Behind an `async_save` only what takes the same backend as the
save counts, the one for tensors in the CPU's memory: barriers, collectives of objects, and tensors that the function
which calls the collective makes without a device. A test for a future (`if future is not None: future.result()`) is
taken to wait for any that there is.

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
from ..traces.nodes import Branch, Call, Event, Fallible, Op, Region
from ..traces.sequence import Walk
from ..traces.where import Where
from .registry import rule
from .support import site
from .support_events import finding, is_default_group, reading
from .support_futures import ASYNC_SAVE, asks, ends_all, waits_for_any
from .support_memory import in_cpu_memory
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
_OF_TENSORS = frozenset(
    {"all_reduce", "broadcast", "all_gather", "reduce", "gather", "reduce_scatter", "scatter"}
)


def check(analysis: Analysis) -> Iterable[Finding]:
    """The first operation of each thread that is started, told where it stands."""
    for root in analysis.roots:
        if "thread" not in root.contents.regions:
            continue
        for step in root.steps:
            thread = step.node
            if not isinstance(thread, Region) or thread.kind != "thread":
                continue
            for inner in steps(thread.body):
                if isinstance(inner.node, Op) and waits(inner.node):
                    yield _finding(thread, inner.node, [*step.calls, *inner.calls])
                    break
    for root in reading(analysis):
        if ASYNC_SAVE in root.contents.ops and root.contents.ops & (_OF_THE_CPU | _OF_TENSORS):
            walk = _Saves(analysis)
            walk.run(root.tree, "")
            yield from walk.found.values()


class _Saves(Walk):
    """State: the save on the default group that may still be communicating, or ""."""

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self.analysis = analysis
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
        if isinstance(state, Op) and self._takes_the_cpu(node):
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
        return "" if ends_all(node) else state

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        """Where one arm waits for a future if there is one, the other has none to wait for."""
        return "" if isinstance(state, Op) and waits_for_any(node, holds) else state

    def _takes_the_cpu(self, op: Op) -> bool:
        if op.name in _OF_THE_CPU:
            return True
        return op.name in _OF_TENSORS and not op.implicit and in_cpu_memory(self.analysis, op.place)


def _finding(thread: Region, op: Op, calls: Iterable[Call]) -> Finding:
    message = (
        f"`{op.text}` runs in another thread (`{thread.text}`), "
        "in no fixed order with the main thread's collectives"
    )
    found = finding_at(RULE, op, message, HELP, calls=calls)
    start = TrailStep(site(thread.place), f"`{thread.text}` starts the thread")
    return dataclasses.replace(found, trail=(start, *found.trail))
