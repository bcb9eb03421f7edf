"""
# filesystem-dependent-branch (SPG304)

## What it does
Finds collectives that depend on what a rank sees in the file system, and ranks that resume where each finds a file of
its own: one without its file begins anew, and runs more rounds than the others.

## Why is this bad
Local disks differ from host to host, a network file system shows a new file to one client seconds before
another, and a file may appear between two ranks' looks. The rank that finds the checkpoint loads it, with
all the collectives of loading; the one that does not starts afresh.

## Example
```python
import os

import torch.distributed as dist


def resume(path, state):
    if os.path.exists(path):
        dist.broadcast(state, src=0)
        return True
    return False
```

## Use instead
Let one rank look, and share what it saw:

```python
import os

import torch.distributed as dist


def resume(path, state):
    seen = [os.path.exists(path) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(seen, src=0)
    if seen[0]:
        dist.broadcast(state, src=0)
        return True
    return False
```

## Known limits
A file that every rank surely sees alike (part of the installed package, written before the launch) is
reported too: nothing in the code says so. Mark the assignment with `# spmdguard: uniform`, or the branch
with `# spmdguard: ignore[SPG304] -- reason`. A resume counts where the file has the rank in its name, and the attribute
that is restored stands in the condition (or the range) of a loop with collectives. Where a rank leaves early, the
finding stands at the condition.

## Fix safety
A branch that stands directly in a loop and ends in `break` or `return` gets an unsafe fix where the function trains
(runs a backward pass or steps an optimizer): `if sync_should_stop(condition): break`. It adds a collective to every
round, and every rank leaves as soon as one wants to. The agreement is one on the end of the whole run, so an
evaluation or a helper gets none. Other forms have no fix.

## References
- [NFS attribute caching, nfs(5)](https://man7.org/linux/man-pages/man5/nfs.5.html)
- SPG503, reading what another rank has just written
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model import Finding
from ..source.unparsing import unparse
from ..traces.nodes import Node
from ..values.value import place_of
from .registry import rule
from .support import from_divergence, moved
from .support_claims import claimed, decided
from .support_events import finding
from .support_resume import resumed_alone

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG304",
    name="filesystem-dependent-branch",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
HELP_RESUME = "all_reduce (MIN) whether the file is there, and resume on all ranks or on none"
HELP = "let rank 0 look and broadcast what it saw, or all_reduce the answers"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Branches and exits that the file system decides."""
    for divergence in claimed(analysis.divergences, RULE.code):
        told = decided(divergence, "the file system as each rank sees it")
        found = from_divergence(RULE, divergence, told, HELP)
        if (
            divergence.shape == "exit"
        ):  # the question is what is wrong: the exit is the same on all ranks that ask alike
            exit_mark = ("exit", found.site)
            found = moved(found, divergence.condition_place, f"`{divergence.text}` leaves")
            found = replace(found, marks=(*found.marks, exit_mark))
        yield found
    for resume in resumed_alone(analysis):
        place = place_of(resume.module.filename, resume.test)
        text = unparse(resume.test.test)
        message = (
            f"`{text}` decides for each rank alone whether it resumes: `{resume.attribute}`, "
            f"by which `{resume.loop.text}` ends, may differ between ranks"
        )
        steps = [(resume.loop.place, f"`{resume.loop.text}` calls collectives in each round")]
        yield finding(RULE, Node(place), message, HELP_RESUME, steps=steps)
