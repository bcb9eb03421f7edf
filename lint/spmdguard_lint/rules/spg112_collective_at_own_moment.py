"""
# collective-at-own-moment (SPG112)

## What it does
Finds collectives that run when a process ends, when an object is destroyed, in the worker processes of a data
loader, or in several coroutines at once, each after an `await`.

## Why is this bad
Such code runs at a moment that is not the same on the ranks, or in a process that belongs to no group:

- An exit handler (`atexit.register`) also runs on a rank that ends with an error. Its barrier waits for the others,
  which wait for this rank in the collective that it has left: the job stands still, and the error is not reported
  before a timeout.
- Python calls `__del__` and `weakref.finalize` when the last reference goes, or when the cyclic garbage collector
  comes by. That depends on each process's allocations, so the collective meets another one of the other ranks.
- A worker process of a `DataLoader` is no member of the process group. A collective in a data set, in `collate_fn`
  or in `worker_init_fn` fails there, or hangs on connections that it shares with the parent.
- Coroutines that run at once (`asyncio.gather`, tasks) go on when what they await has come: a read that is slower on
  one rank lets that rank call its collectives in another order than the others.

## Example
```python
import atexit

import torch.distributed as dist


def leave():
    dist.barrier()
    dist.destroy_process_group()


def connect():
    dist.init_process_group("nccl")
    atexit.register(leave)
```

## Use instead
Call the collective in the normal course of the run, where every rank comes by, and let only what is local run later:

```python
import torch.distributed as dist


def main(train):
    dist.init_process_group("nccl")
    train()
    dist.barrier()
    dist.destroy_process_group()
```

What the workers of a data loader need from the other ranks, the main process fetches before it makes the loader.

## Known limits
Data sets and functions are followed where the loader is made with a number of workers. Destroying a process group
at exit is no finding of this rule.

## Fix safety
No fix.

## References
- [atexit](https://docs.python.org/3/library/atexit.html)
- [object.__del__](https://docs.python.org/3/reference/datamodel.html#object.__del__)
- [torch.utils.data: multi-process data
  loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
- SPG108, the same for threads
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..interpreter.concurrent import AWAITS, GATHERED, TASK
from ..model import Finding, TrailStep
from ..names.dotted import dotted_name
from ..names.symbols import ExternalSymbol
from ..traces.judged import group_key
from ..traces.nodes import Branch, Call, Event, Loop, Node, Op, Region, Tree, every_node
from .registry import rule
from .support import site
from .support_trees import Step, finding_at, steps

if TYPE_CHECKING:
    from ..analysis import Analysis, Root

RULE = rule(code="SPG112", name="collective-at-own-moment", severity="error", status="stable", page=__doc__)
_WHEN = {
    "exit": "when this process or object ends, also on a rank that ends with an error",
    "worker": "in a worker process of the data loader, which is no member of the process group",
    "destructor": "when Python destroys the object, at another moment on each rank",
}
_HELP = {
    "exit": "call it where every rank comes by in the normal course of the run",
    "worker": "call it in the main process before the loader is made, and hand the result over",
    "destructor": "call it in a method that every rank calls at the same point of the run",
    "task": "gather what is awaited first, and call the collectives one after another behind it",
}


def check(analysis: Analysis) -> Iterable[Finding]:
    """The first collective of each function that runs at a moment of its own."""
    for root in analysis.roots:
        if not root.contents.regions.isdisjoint(("exit", "worker")):
            yield from _handed_over(root)
        if not root.contents.regions.isdisjoint((GATHERED, TASK)):
            yield from _at_once(root.tree)
        kind = _runs_as(analysis, root)
        if kind:
            yield from _first(root.tree, kind)


def _handed_over(root: Root) -> Iterator[Finding]:
    for step in root.steps:
        region = step.node
        if not isinstance(region, Region) or region.kind not in ("exit", "worker"):
            continue
        for finding in _first(region.body, region.kind):
            start = TrailStep(site(region.place), f"`{region.text}` hands it over")
            yield dataclasses.replace(finding, trail=(start, *finding.trail))


def _at_once(tree: Tree, calls: tuple[Call, ...] = (), *, loop: bool = False) -> Iterator[Finding]:
    """Coroutines that run at once, of which several communicate after something that each rank awaits for itself."""
    tasks: list[Region] = []
    again = loop and not any(isinstance(node, Event) and node.name == AWAITS for node in tree)
    for node in tree:
        if isinstance(node, Event) and node.name == AWAITS:
            tasks = []
        elif isinstance(node, Region) and node.kind in (GATHERED, TASK):
            tasks = [*tasks, node] if node.kind == TASK else tasks
            parts = [one for task in tasks for one in task.body] if node.kind == TASK else node.body
            several = again and node.kind == TASK
            yield from _turns([(one, _after_await([one])) for one in parts], node, calls, several=several)
        for child in node.subtrees():
            around = (*calls, node) if isinstance(node, Call) else calls
            yield from _at_once(child, around, loop=isinstance(node, Loop))


def _turns(
    coroutines: list[tuple[Node, Op | None]], region: Region, calls: tuple[Call, ...], *, several: bool
) -> Iterator[Finding]:
    found = [(one, op) for one, op in coroutines if op is not None]
    if len(found) > 1 or (found and several) or any(isinstance(one, Loop) for one, _ in found):
        op = found[0][1]
        message = f"`{op.text}` runs when what was awaited has come, and so does another coroutine of `{region.text}`"
        yield finding_at(RULE, op, message, _HELP["task"], calls=calls)


def _after_await(tree: Tree) -> Op | None:
    """The first operation of a coroutine that comes after an ``await``, be it of the round before."""
    awaits = False
    for node in every_node(tree):
        awaits = awaits or (isinstance(node, Event) and node.name == AWAITS)
        if awaits and isinstance(node, Op) and _meets(node) and group_key(node) is None:
            return node
        if isinstance(node, Loop) and _awaits_inside(node):
            awaits = True
    return None


def _awaits_inside(loop: Loop) -> bool:
    return any(isinstance(node, Event) and node.name == AWAITS for node in every_node(loop.body))


def _first(tree: Tree, kind: str) -> Iterator[Finding]:
    found: Step | None = next((step for step in steps(tree) if _meets(step.node)), None)
    if found is not None and not (kind == "worker" and _not_in_worker(tree, found)):
        text = getattr(found.node, "text", "")
        message = f"`{text}` runs {_WHEN[kind]}"
        yield finding_at(RULE, found.node, message, _HELP[kind], calls=found.calls)


def _meets(node: object) -> bool:
    """Whether ranks wait for one another in an operation."""
    return isinstance(node, Op) and node.kind == "collective"


def _not_in_worker(tree: Tree, found: Step) -> bool:
    """Whether the code asks if it runs in a worker, or makes groups of its own there."""
    return any(isinstance(node, Branch) and "worker" in node.text for node, _ in found.path) or any(
        isinstance(step.node, Op) and step.node.kind == "lifecycle" for step in steps(tree)
    )


def _runs_as(analysis: Analysis, root: Root) -> str:
    """Whether Python calls the function at a moment of its own: "destructor", "exit" or "" for none."""
    function = root.function
    if function is None:
        return ""
    if function.name == "__del__" and function.cls is not None:
        return "destructor"
    for decorator in function.decorators:
        name = dotted_name(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name and analysis.project.resolve(root.module, name) == ExternalSymbol("atexit.register"):
            return "exit"
    return ""
