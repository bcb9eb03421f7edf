"""
# unsynced-signal-stop (SPG308)

## What it does
Finds exits, collectives and requests to the trainer that depend on a flag set by a signal handler, without the
ranks having agreed, and collectives that a signal handler itself calls.

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
A handler that ends the process group, and calls nothing else, is left alone. Handlers are known where they
are installed by `signal.signal` with a function of the project. Flags that another library's handler sets are
known only for the libraries in the fact tables.

## Fix safety
A branch that stands directly in a loop and ends in `break` or `return` gets an unsafe fix:
`if sync_should_stop(condition): break`. It adds a collective to every round, and every rank leaves as soon as one
wants to. Other forms have no fix.

## References
- `spmdguard.sync_should_stop(stop)` shares the flag at the end of a step
- [Slurm: signals before the time limit](https://slurm.schedmd.com/sbatch.html#OPT_signal)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.nodes import Op
from .registry import rule
from .support import from_divergence
from .support_claims import claimed, decided, where_decided
from .support_events import counts
from .support_trees import finding_at, steps

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..traces.nodes import Tree

RULE = rule(
    code="SPG308",
    name="unsynced-signal-stop",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
_ENDING = ("destroy_process_group", "abort")
REASON = "a signal that may reach one rank alone"
HELP = "all_reduce the flag (MAX), or pass it to `sync_should_stop`, before acting on it"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Branches and exits that a signal decides."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = decided(divergence, REASON)
        yield from_divergence(RULE, divergence, message, HELP, place=where_decided(divergence))
    for tree in analysis.in_handlers.values():
        yield from _inside(tree)


def _inside(tree: Tree) -> Iterator[Finding]:
    """What a handler itself calls together with the other ranks, wherever each of them is at that moment."""
    for step in steps(tree):
        op = step.node
        if not isinstance(op, Op) or not counts(op) or op.name in _ENDING:
            continue
        handler, *calls = step.calls
        shown = next(iter(calls), op)
        yield finding_at(
            RULE,
            shown,
            f"`{getattr(shown, 'text', op.text)}` communicates in a signal handler (`{handler.name}`), "
            "which each process runs wherever it happens to be",
            "let the handler set a flag, and agree on it at the end of a step",
            reached=op,
            calls=step.calls[:1],
            diverging=(f"{op.text}  # between two collectives of the training",),
            others=("the next collective of the training, or no signal at all",),
        )
        return
