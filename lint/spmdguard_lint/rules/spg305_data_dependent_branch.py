"""
# data-dependent-branch (SPG305)

## What it does
Finds collectives that run or not depending on this rank's own data: a loss, a batch, a count, an overflow.

## Why is this bad
With data parallelism every rank holds other data. "Skip the reduction when there is nothing to reduce" is
then a different choice on each rank, and the ranks that have something wait for the one that has nothing.

## Example
```python
import torch.distributed as dist


def mean_of_positives(model, loader):
    for batch in loader:
        positives = batch["label"].sum()
        if positives.item() > 0:
            dist.all_reduce(positives)
```

## Use instead
An empty contribution is a contribution:

```python
import torch.distributed as dist


def mean_of_positives(model, loader):
    for batch in loader:
        positives = batch["label"].sum()
        dist.all_reduce(positives)
```

## Known limits
Nothing in the code proves that the values differ, only that nothing makes them equal; hence the certainty
`likely`. A value that the ranks go on to sum or gather is taken to be each rank's own, unless a loop carries it from
round to round: the last round may have joined it. A value that was reduced, gathered or broadcast is the same
everywhere and gives no finding. Exits under such a condition are SPG102, a `raise` is SPG205.

## Fix safety
No fix: what a rank without data contributes is the author's choice.

## References
-
  [torch.distributed.algorithms.Join](https://docs.pytorch.org/docs/stable/distributed.algorithms.join.html)
  for uneven inputs
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
    code="SPG305",
    name="data-dependent-branch",
    severity="warning",
    status="stable",
    page=__doc__,
)
HELP = "call the collective on every rank, with an empty contribution where there is no data"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Branches and exits that this rank's own data decides."""
    for divergence in claimed(analysis.divergences, RULE.code):
        yield from_divergence(RULE, divergence, decided(divergence, "this rank's own data"), HELP)
