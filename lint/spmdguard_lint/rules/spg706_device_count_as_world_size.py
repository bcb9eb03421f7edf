"""
# device-count-as-world-size (SPG706)

## What it does
Finds groups and samplers whose size is the number of devices of this host, as it is or times torchrun's number of hosts
(`GROUP_WORLD_SIZE`), while the rank is the launcher's.

## Why is this bad
On one host with one process per device the two are equal, and the program works. On two hosts every host
makes a group of its own size: ranks beyond it are refused, and the others wait for a group that is never
complete. Where the launcher starts fewer processes than a host has devices (`--nproc_per_node=2` of eight), all wait
for ranks that nobody has started.

## Example
```python
import os

import torch
import torch.distributed as dist

def main():
    rank = int(os.environ["RANK"])
    dist.init_process_group("nccl", rank=rank, world_size=torch.cuda.device_count())
    dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist

def main():
    dist.init_process_group("nccl")
    dist.destroy_process_group()
```

The launcher's environment has both, rank and world size.

## Known limits
Programs that start their own processes on one host (`mp.spawn`) may use the number of devices, and do not get
this report. A product with another number of hosts is left alone: on full hosts it is the size of the job.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import parts_of
from ..traces.nodes import Event, every_node
from .support_events import argument, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..values.value import Value

RULE = rule(
    code="SPG706", name="device-count-as-world-size", severity="warning", status="stable", page=__doc__
)
_HOSTS = ("environ", "GROUP_WORLD_SIZE")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report init calls with the launcher's rank and a host's number of devices."""
    for root in reading(analysis):
        events = root.contents.events
        if "device-count" not in events or not events & {"init", "sampler"}:
            continue
        for node in every_node(root.tree):
            if isinstance(node, Event) and (joins(node) or divides(node)):
                yield finding(
                    RULE,
                    node,
                    f"`{node.text}` takes the number of devices for the size of the whole job",
                    "leave it out: the launcher's environment has both rank and world size",
                )


def joins(node: Event) -> bool:
    """Whether a group is made for a launcher's rank, as large as this host."""
    if node.name != "init":
        return False
    world, rank = argument(node, 3, "world_size"), argument(node, 4, "rank")
    if world is None or rank is None or not is_device_count(world) or not launched(rank):
        return False
    return any(part.tag in ("rank", "local_rank") for part in parts_of(rank))


def divides(node: Event) -> bool:
    """Whether a sampler divides the data among the devices of this host, while the job has more ranks."""
    if not node.call.endswith("DistributedSampler"):
        return False
    shares, rank = argument(node, 1, "num_replicas"), argument(node, 2, "rank")
    if shares is None or rank is None or not is_device_count(shares):
        return False
    return any(part.tag == "rank" for part in parts_of(rank)) and launched(rank)


def launched(rank: Value) -> bool:
    """Whether a rank comes out of a launcher's environment, and not from a parameter."""
    return any("env" in taint.text or "get_rank" in taint.text for taint in rank.taint)


def is_device_count(value: Value) -> bool:
    """Whether a value is a number of devices, as it is or times the number of hosts that the launcher gives."""
    if value.tag == "expr" and value.data[0] == "*":
        first, second = value.data[1]
        return (is_device_count(first) and _launched_hosts(second)) or (
            is_device_count(second) and _launched_hosts(first)
        )
    name = value.data[0] if value.tag == "sym" else None
    return isinstance(name, tuple) and str(name[0]).endswith("device_count")


def _launched_hosts(value: Value) -> bool:
    """Whether a number is what torchrun says of its hosts, beside which it says how many processes it has started."""
    return any(part.tag == "sym" and part.data[0] == _HOSTS for part in parts_of(value))
