"""
# random-dependent-branch (SPG303)

## What it does
Finds collectives that a random number decides on, drawn by each rank for itself.

## Why is this bad
Layer drop, scheduled sampling, "evaluate on every hundredth step on average": each rank throws its own
dice, and those that throw differently call different collectives. Seeding with `seed + rank`, which is
right for data augmentation, makes it certain.

## Example
```python
import random

import torch.distributed as dist


def step(grads, drop):
    if random.random() < drop:
        return
    dist.all_reduce(grads)
```

## Use instead
Draw from a generator that has the same seed on every rank and is used for nothing else:

```python
import random

import torch.distributed as dist


def train(batches, drop, seed):
    shared = random.Random(seed)
    for grads in batches:
        if shared.random() < drop:
            continue
        dist.all_reduce(grads)
```

or draw on one rank and broadcast the result.

## Known limits
A generator counts as shared when it was seeded with something that is the same on every rank, in the part
of the program that the analysis follows. That all ranks draw equally often from it is not checked, except
where another rule sees the branch.

## Fix safety
A branch that stands directly in a loop and ends in `break` or `return` gets an unsafe fix where the function trains
(runs a backward pass or steps an optimizer): `if sync_should_stop(condition): break`. It adds a collective to every
round, and every rank leaves as soon as one wants to. The agreement is one on the end of the whole run, so an
evaluation or a helper gets none. Other forms have no fix.

## References
- [Reproducibility, PyTorch notes](https://docs.pytorch.org/docs/stable/notes/randomness.html)
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
    code="SPG303",
    name="random-dependent-branch",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
HELP = "draw from a generator with the same seed on every rank, or broadcast the draw"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Branches and exits that a rank's own random number decides."""
    for divergence in claimed(analysis.divergences, RULE.code):
        yield from_divergence(
            RULE, divergence, decided(divergence, "a random number of each rank's own"), HELP
        )
