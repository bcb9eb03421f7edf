"""
# time-dependent-branch (SPG302)

## What it does
Finds collectives that a rank's own clock decides on.

## Why is this bad
Every process has its own clock, and reads it at its own moment. A time limit or "save every ten minutes"
is reached by one rank a step before the others: it saves, or leaves the loop, and the others wait. Since
it takes two ranks on different sides of the limit, the job runs for days before it hangs.

## Example
```python
import time

import torch.distributed as dist


def train(steps, step, save_all, interval):
    last = time.monotonic()
    for _ in range(steps):
        dist.all_reduce(step())
        if time.monotonic() - last > interval:
            dist.barrier()
            last = time.monotonic()
```

## Use instead
Let one rank read the clock and tell the others:

```python
import time

import torch
import torch.distributed as dist


def train(steps, step, save_all, interval):
    last = time.monotonic()
    for _ in range(steps):
        dist.all_reduce(step())
        due = torch.tensor(int(time.monotonic() - last > interval))
        dist.broadcast(due, src=0)
        if due.item():
            dist.barrier()
            last = time.monotonic()
```

or count steps instead of seconds.

## Known limits
Deadlines kept by an object of another library are seen only where the library is known. Clocks that are
only printed or logged do not matter. A deadline that is checked by a `while` loop is reported here as
well.

## Fix safety
A branch that stands directly in a loop and ends in `break` or `return` gets an unsafe fix where the function trains
(runs a backward pass or steps an optimizer): `if sync_should_stop(condition): break`. It adds a collective to every
round, and every rank leaves as soon as one wants to. The agreement is one on the end of the whole run, so an
evaluation or a helper gets none. Other forms have no fix.

## References
- `spmdguard.sync_should_stop(time_is_up)` shares a deadline at the end of a step
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from .registry import rule
from .support import from_divergence
from .support_claims import claimed, decided, where_decided

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG302",
    name="time-dependent-branch",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
HELP = "let rank 0 read the clock and broadcast the decision, or count steps"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Branches and exits that the clock decides."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = decided(divergence, "each rank's own clock")
        yield from_divergence(RULE, divergence, message, HELP, place=where_decided(divergence))
