"""
# device-not-bound-to-local-rank (SPG705)

## What it does
Finds collectives of an NCCL group that come before the process has been bound to its device.

## Why is this bad
A collective needs a device. Where none is bound, PyTorch guesses one from the global rank, or takes device 0
for every rank of a host. The communicator is then made on the wrong device: memory of the first device fills
up, two ranks share one device and NCCL refuses or hangs, and the binding that follows comes too late.

## Example
```python
import os

import torch
import torch.distributed as dist

def main():
    dist.init_process_group("nccl")
    dist.barrier()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
```

## Use instead
```python
import os

import torch
import torch.distributed as dist

def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    dist.barrier()
```

## Known limits
Reported only where the device is bound later on the same path; a program that never binds one is not.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group (`device_id`)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from .support_events import argument, counts, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(
    code="SPG705", name="device-not-bound-to-local-rank", severity="warning", status="stable", page=__doc__
)
_START, _JOINED, _BOUND = "start", "joined", "bound"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report operations between the making of an NCCL group and the binding of the device."""
    for root in reading(analysis):
        if {"init", "set-device"} <= root.contents.events:
            walk = _Bindings()
            walk.run(root.tree, _START)
            yield from walk.found.values()


class _Bindings(Walk):
    """State: before the group, in it without a device (or the first operation there), bound."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event):
            if node.name == "init" and state == _START:
                return _JOINED if _is_nccl(node) else _BOUND
            if node.name == "set-device":
                if isinstance(state, Op):
                    self._report(state, node)
                return _BOUND
        elif isinstance(node, Op) and state == _JOINED and counts(node) and node.name != "init_process_group":
            self.ways.setdefault(node, where)
            return node
        return state

    def _report(self, operation: Op, binding: Event) -> None:
        if operation not in self.found:
            self.found[operation] = finding(
                RULE,
                operation,
                f"`{operation.text}` comes before `{binding.text}`: its device is guessed",
                "bind the device before the group is made, and pass `device_id` to `init_process_group`",
                steps=[(binding.place, f"`{binding.text}` binds the device only here")],
                where=self.ways.get(operation),
            )


def _is_nccl(node: Event) -> bool:
    """Whether a group is made with NCCL and without a device."""
    backend = argument(node, 0, "backend")
    named = backend is not None and backend.tag == "const" and "nccl" in str(backend.data[0])
    return named and "device_id" not in node.keywords
