"""
# device-not-bound-to-local-rank (SPG705)

## What it does
Finds collectives of an NCCL group that come before the process has been bound to its device, processes that are
bound to the device with the number of their global rank, and programs that bind none at all.

## Why is this bad
A collective needs a device. Where none is bound, PyTorch guesses one from the global rank, or takes device 0
for every rank of a host. The communicator is then made on the wrong device: memory of the first device fills
up, two ranks share one device and NCCL refuses or hangs, and the binding that follows comes too late.

Devices are counted within a host, global ranks over all hosts. `torch.cuda.set_device(dist.get_rank())` works on the
first host; the first rank of the second one asks for a device that does not exist, fails, and the others wait for it.

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
A collective is reported only where the device is bound later on the same path. A program that never binds one is
reported where it asks for `cuda` without a number, several of its processes share a host (`LOCAL_RANK`, `torchrun`,
`spawn`), and no framework is there that might bind it.
A global rank as device counts where it comes from the launcher or the group (`RANK`, `get_rank()`); in files that start
their processes themselves, or ask for the number of devices, it is taken for one of a single host.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group (`device_id`)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Branch, Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from ..values.value import Value
from .support_devices import is_nccl, never_bound
from .support_events import counts, finding, reading
from .support_trees import Step, finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(
    code="SPG705", name="device-not-bound-to-local-rank", severity="warning", status="stable", page=__doc__
)
BIND = 'call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before'
_ONE_HOST = (b"spawn", b"Process(", b"device_count")
_START, _JOINED, _BOUND = "start", "joined", "bound"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report operations between the making of an NCCL group and the binding of the device."""
    for root in reading(analysis):
        if {"init", "set-device"} <= root.contents.events:
            walk = _Bindings()
            walk.run(root.tree, _START)
            yield from walk.found.values()
        if "set-device" in root.contents.events and _several_hosts(root.module):
            for step in root.steps:
                yield from _by_global_rank(step)
    for made in never_bound(analysis):
        message = f"nothing binds a device: every rank of a host takes device 0 in the group of `{made.text}`"
        yield finding(RULE, made, message, BIND)


def _several_hosts(module: Module) -> bool:
    """Whether nothing in a file says that its ranks are those of one host."""
    return not any(word in module.source.content for word in _ONE_HOST)


def _by_global_rank(step: Step) -> Iterator[Finding]:
    """A binding to the device with the number of the global rank, in a program that does not start its ranks itself."""
    node = step.node
    if not isinstance(node, Event) or node.name != "set-device" or not node.args:
        return
    rank = _device_number(node.args[0])
    if rank.tag != "rank" or not rank.taint or any(_is_told(taint.text) for taint in rank.taint):
        return
    if any(isinstance(n, Branch) and "local" in n.text.lower() for n, _ in step.path):
        return
    message = f"`{node.text}` takes the global rank for the number of a device of this host"
    help_text = 'bind the device of the local rank: `int(os.environ["LOCAL_RANK"])`'
    yield finding_at(RULE, node, message, help_text, taints=rank.taint, calls=step.calls)


def _device_number(device: Value) -> Value:
    """The number in ``3``, ``"cuda:3"`` and ``torch.device("cuda", 3)``."""
    while device.tag == "expr" and device.data[0] in ("format", "call:torch.device"):
        device = device.data[1][-1]
    return device


def _is_told(text: str) -> bool:
    """Whether a rank is a bare name: a parameter, whose callers know what it counts."""
    return text.isidentifier()


class _Bindings(Walk):
    """State: before the group, in it without a device (or the first operation there), bound."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event):
            if node.name == "init" and state == _START:
                return _JOINED if is_nccl(node) else _BOUND
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
