"""
# while-on-local-state (SPG402)

## What it does
Finds `while` loops that call collectives and end when this rank's own state says so.

## Why is this bad
`while not converged`, `while queue`, `while loss > tolerance`: each rank decides for itself when to stop.
The first to stop goes on; the others call the loop's collective once more and wait for it.

## Example
```python
import torch.distributed as dist


def solve(residual, update):
    error = residual(dist.get_rank())
    while error > 1e-6:
        dist.all_reduce(update())
        error = residual(dist.get_rank())
```

## Use instead
Test a value that all ranks share:

```python
import torch
import torch.distributed as dist


def solve(residual, update):
    error = torch.tensor(residual(dist.get_rank()))
    dist.all_reduce(error, op=dist.ReduceOp.MAX)
    while error > 1e-6:
        dist.all_reduce(update())
        error = torch.tensor(residual(dist.get_rank()))
        dist.all_reduce(error, op=dist.ReduceOp.MAX)
```

## Known limits
A loop that ends on the clock is SPG302, on a signal's flag SPG308. Loops without collectives in them may
end when they like. `while True` with a `break` is judged at the `break` (SPG102).

## Fix safety
No fix: the agreement costs a collective for each round.

## References
- [MPI: A Message-Passing Interface Standard](https://www.mpi-forum.org/docs/), chapter on collective
  communication, section "Correctness"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from .registry import rule
from .support import from_divergence
from .support_claims import claimed, where_repeated

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(code="SPG402", name="while-on-local-state", severity="error", status="stable", page=__doc__)
HELP = "reduce the condition's value over all ranks before testing it"


def check(analysis: Analysis) -> Iterable[Finding]:
    """While loops whose condition differs between ranks."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = (
            f"`{divergence.condition_text}` ends when this rank's own state says so, "
            f"and each round calls `{divergence.text}`"
        )
        yield from_divergence(RULE, divergence, message, HELP, place=where_repeated(divergence))
