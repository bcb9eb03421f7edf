"""
# unsynced-signal-stop (SPG308)

## What it does
Finds exits and collectives that depend on a flag set by a signal handler, without the ranks having agreed.

## Why is this bad
A scheduler's SIGTERM reaches the processes one after another, and sometimes only one of them. A rank that
sees the flag at step 100 leaves; another saw it a moment later, is in step 101 and waits for the first.
The checkpoint that the signal was meant to save is lost with the job.

## Example
```python
import signal

import torch.distributed as dist

stop = False


def on_term(signum, frame):
    global stop
    stop = True


def train(batches):
    signal.signal(signal.SIGTERM, on_term)
    for grads in batches:
        if stop:
            break
        dist.all_reduce(grads)
```

## Use instead
```python
import signal

import torch
import torch.distributed as dist

stop = False


def on_term(signum, frame):
    global stop
    stop = True


def train(batches):
    signal.signal(signal.SIGTERM, on_term)
    for grads in batches:
        flag = torch.tensor(int(stop))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item():
            break
        dist.all_reduce(grads)
```

## Known limits
Handlers are known where they are installed by `signal.signal` with a function of the project. Flags that
another library's handler sets are known only for the libraries in the fact tables.

## Fix safety
A branch that stands directly in a loop and ends in `break` or `return` gets an unsafe fix:
`if sync_should_stop(condition): break`. It adds a collective to every round, and every rank leaves as soon as one
wants to. Other forms have no fix.

## References
- `spmdguard.sync_should_stop(stop)` shares the flag at the end of a step
- [Slurm: signals before the time limit](https://slurm.schedmd.com/sbatch.html#OPT_signal)
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
    code="SPG308",
    name="unsynced-signal-stop",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
HELP = "all_reduce the flag (MAX), or pass it to `sync_should_stop`, before acting on it"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Branches and exits that a signal decides."""
    for divergence in claimed(analysis.divergences, RULE.code):
        yield from_divergence(
            RULE, divergence, decided(divergence, "a signal that may reach one rank alone"), HELP
        )
