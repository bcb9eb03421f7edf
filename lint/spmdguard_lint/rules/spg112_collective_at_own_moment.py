"""
# collective-at-own-moment (SPG112)

## What it does
Finds collectives that run when a process ends, when an object is destroyed, or in the worker processes of a data
loader.

## Why is this bad
Such code runs at a moment that is not the same on the ranks, or in a process that belongs to no group:

- An exit handler (`atexit.register`) also runs on a rank that ends with an error. Its barrier waits for the others,
  which wait for this rank in the collective that it has left: the job stands still, and the error is not reported
  before a timeout.
- Python calls `__del__` and `weakref.finalize` when the last reference goes, or when the cyclic garbage collector
  comes by. That depends on each process's allocations, so the collective meets another one of the other ranks.
- A worker process of a `DataLoader` is no member of the process group. A collective in a data set, in `collate_fn`
  or in `worker_init_fn` fails there, or hangs on connections that it shares with the parent.

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

from ..model import Finding, TrailStep
from ..names.dotted import dotted_name
from ..names.symbols import ExternalSymbol
from ..traces.nodes import Branch, Op, Region, Tree
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
}


def check(analysis: Analysis) -> Iterable[Finding]:
    """The first collective of each function that runs at a moment of its own."""
    for root in analysis.roots:
        if not root.contents.regions.isdisjoint(("exit", "worker")):
            yield from _handed_over(root)
        kind = _runs_as(analysis, root)
        if kind:
            yield from _first(root.tree, kind)


def _handed_over(root: Root) -> Iterator[Finding]:
    for step in steps(root.tree):
        region = step.node
        if not isinstance(region, Region) or region.kind not in ("exit", "worker"):
            continue
        for finding in _first(region.body, region.kind):
            start = TrailStep(site(region.place), f"`{region.text}` hands it over")
            yield dataclasses.replace(finding, trail=(start, *finding.trail))


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
