"""
# device-count-as-world-size (SPG706)

## What it does
Finds groups and samplers whose size is the number of devices of this host, as it is or times torchrun's number of hosts
(`GROUP_WORLD_SIZE`), while the rank is the launcher's. So it does sizes that are the launcher's number of hosts
(`SLURM_NNODES`) or of processes on one host (`LOCAL_WORLD_SIZE`), given to the group or set as `WORLD_SIZE`, while the
rank is that of the process in the whole job.

## Why is this bad
On one host with one process per device the two are equal, and the program works. On two hosts every host
makes a group of its own size: ranks beyond it are refused, and the others wait for a group that is never
complete. Where the launcher starts fewer processes than a host has devices (`--nproc_per_node=2` of eight), all wait
for ranks that nobody has started. The number of hosts is the size of the job only where each host runs one process.

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

The launcher's environment has both, rank and world size (under Slurm `SLURM_PROCID` and `SLURM_NTASKS`).

## Known limits
Programs that start their own processes on one host (`mp.spawn`) may use the number of devices, and do not get
this report. A product with another number of hosts is left alone: on full hosts it is the size of the job. Hosts and
processes of a host are counted by variables that Slurm, torchrun and MPI set; a script's own `NNODES` is not looked at.

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
_DEVICES, _NUM_HOSTS, _ON_HOST = "devices", "hosts", "processes on one host"
_COUNTED = {
    **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_STEP_NUM_NODES"), _NUM_HOSTS),
    **dict.fromkeys(("GROUP_WORLD_SIZE", "PMIX_NUM_NODES"), _NUM_HOSTS),
    **dict.fromkeys(("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"), _ON_HOST),
    **dict.fromkeys(("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"), _ON_HOST),
    **dict.fromkeys(("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"), _DEVICES),
}
HELP = "leave it out: the launcher's environment has both rank and world size"
HELP_SLURM = "take the number of all processes (`WORLD_SIZE`, `SLURM_NTASKS`)"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report groups and samplers for the launcher's rank that are as large as a host, or as the number of hosts."""
    for root in reading(analysis):
        if not root.contents.events & {"init", "sampler"}:
            continue
        nodes = [node for node in every_node(root.tree) if isinstance(node, Event)]
        for node in nodes:
            counted = joins(node) or divides(node)
            if counted:
                message = f"`{node.text}` takes the number of {counted} for the size of the whole job"
                yield finding(RULE, node, message, HELP if counted == _DEVICES else HELP_SLURM)
        yield from _told(nodes)


def _told(nodes: list[Event]) -> Iterable[Finding]:
    """Sizes that are set for the group to read: beside the rank of the process, and for one that is given none."""
    variables = [node for node in nodes if node.name == "set-env"]
    ranked = any(node.args[0].data[0] == "RANK" and _of_process(node.args[1]) for node in variables)
    read = any(node.name == "init" and argument(node, 3, "world_size") is None for node in nodes)
    for node in variables if ranked and read else ():
        counted = _counted(node.args[1])
        if node.args[0].data[0] == "WORLD_SIZE" and counted:
            message = f"`{node.text}` takes the number of {counted} for the size of the whole job"
            yield finding(RULE, node, message, HELP_SLURM)


def joins(node: Event) -> str:
    """What was counted for a group, made for a launcher's rank, that is as large as a host, or as there are hosts."""
    if node.name != "init":
        return ""
    world, rank = argument(node, 3, "world_size"), argument(node, 4, "rank")
    if world is None or rank is None or not launched(rank):
        return ""
    if is_device_count(world) and any(part.tag in ("rank", "local_rank") for part in parts_of(rank)):
        return _DEVICES
    return _counted(world) if _of_process(rank) else ""


def divides(node: Event) -> str:
    """What was counted for a sampler that divides the data among too few, while the job has more ranks."""
    if not node.call.endswith("DistributedSampler"):
        return ""
    shares, rank = argument(node, 1, "num_replicas"), argument(node, 2, "rank")
    if shares is None or rank is None or not launched(rank):
        return ""
    if is_device_count(shares) and any(part.tag == "rank" for part in parts_of(rank)):
        return _DEVICES
    return _counted(shares) if _of_process(rank) else ""


def _of_process(rank: Value) -> bool:
    """Whether a rank is the launcher's own number of this process in the whole job, as it is."""
    return _bare(rank).tag == "rank" and launched(rank)


def _counted(size: Value) -> str:
    """What a variable of the launcher counts that is not the number of all processes, or ""."""
    name = _bare(size).data[0] if _bare(size).tag == "sym" else None
    return _COUNTED.get(name[1], "") if isinstance(name, tuple) and name[:1] == ("environ",) else ""


def _bare(value: Value) -> Value:
    """A value without its conversions between number and text."""
    while value.tag == "expr" and value.data[0] in ("int", "str"):
        value = value.data[1][0]
    return value


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
