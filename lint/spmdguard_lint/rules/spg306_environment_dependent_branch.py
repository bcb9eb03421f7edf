"""
# environment-dependent-branch (SPG306)

## What it does
Finds collectives that depend on something that differs between hosts or processes: the host name, the
process id, the number of CPUs, a device's free memory.

## Why is this bad
On one machine all ranks agree, so it passes every test. On the cluster one host has another name, another
disk or another driver, and its ranks call other collectives than the rest.

## Example
```python
import socket

import torch.distributed as dist


def sync(x):
    if socket.gethostname().startswith("gpu"):
        dist.all_reduce(x)
```

## Use instead
Decide once, on one rank or from the launch arguments, and share the decision:

```python
import socket

import torch.distributed as dist


def sync(x):
    choice = [socket.gethostname().startswith("gpu")]
    dist.broadcast_object_list(choice, src=0)
    if choice[0]:
        dist.all_reduce(x)
```

## Known limits
Environment variables that a launcher sets to the same value for every process are taken to be the same;
only those known to differ (ranks, host names) are not.

## Fix safety
A branch that stands directly in a loop and ends in `break` or `return` gets an unsafe fix where the function trains
(runs a backward pass or steps an optimizer): `if sync_should_stop(condition): break`. It adds a collective to every
round, and every rank leaves as soon as one wants to. The agreement is one on the end of the whole run, so an
evaluation or a helper gets none. Other forms have no fix.

## References
- [torchrun: environment
  variables](https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from .registry import rule
from .support import from_divergence
from .support_claims import claimed, decided

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG306",
    name="environment-dependent-branch",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
HELP = "decide on one rank and broadcast the decision"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Branches and exits that the host or the process decides."""
    for divergence in claimed(analysis.divergences, RULE.code):
        yield from_divergence(
            RULE, divergence, decided(divergence, "the host or process that each rank runs on"), HELP
        )
