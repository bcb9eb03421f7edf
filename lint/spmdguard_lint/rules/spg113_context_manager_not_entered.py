"""
# context-manager-not-entered (SPG113)

## What it does
Finds context managers that communicate, wait for another rank, or change what is exchanged, which are only called and
not entered: the call stands alone, without `with`.

## Why is this bad
A context manager does its work when it is entered. `accelerator.main_process_first()` on a line of its own makes an
object and throws it away: no rank waits, and no error says so. The ranks that should have waited go on at once, to a
file that is not there yet, or into a barrier in which they wait for longer than its timeout.

## Example
```python
import contextlib
import os
import time

import torch.distributed as dist


@contextlib.contextmanager
def after_local_rank_zero(done):
    if int(os.environ["LOCAL_RANK"]) != 0:
        while not done.exists():
            time.sleep(1)
    yield


def fetch(done):
    after_local_rank_zero(done)
    dist.barrier()
```

## Use instead
```python
import contextlib
import os
import time

import torch.distributed as dist


@contextlib.contextmanager
def after_local_rank_zero(done):
    if int(os.environ["LOCAL_RANK"]) != 0:
        while not done.exists():
            time.sleep(1)
    yield


def fetch(done):
    with after_local_rank_zero(done):
        dist.barrier()
```

## Known limits
A manager that is given a name and then never entered is not seen. Managers of the project count where they call a
collective or ask for the rank.

## Fix safety
No fix: only the author knows which lines belong into the block.

## References
- [contextlib.contextmanager](https://docs.python.org/3/library/contextlib.html#contextlib.contextmanager)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..interpreter.discarded import EVENT
from ..model import Finding
from ..traces.nodes import Event, Node
from .registry import rule
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG113", name="context-manager-not-entered", severity="error", status="stable", page=__doc__
)
HELP = "enter it: `with ...:` around what it is for"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Calls on a line of their own that make a context manager which matters to other ranks."""
    seen: set[Node] = set()
    for root in analysis.roots:
        if EVENT not in root.contents.events:
            continue
        for step in root.steps:
            node = step.node
            if isinstance(node, Event) and node.name == EVENT and node not in seen:
                seen.add(node)
                message = f"`{node.text}` makes a context manager that nothing enters: the call has no effect"
                yield finding_at(RULE, node, message, HELP, certainty="definite")
