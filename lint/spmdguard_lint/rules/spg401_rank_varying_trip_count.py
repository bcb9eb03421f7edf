"""
# rank-varying-trip-count (SPG401)

## What it does
Finds `for` loops that call collectives and may run a different number of times on different ranks.

## Why is this bad
A rank whose loop ends a round earlier goes on to the collective behind the loop, or to the end of the
program, while the others call the loop's collective once more. Shards that do not divide evenly, files
split with `files[rank::world_size]`, a filter on the samples, a loader without `drop_last`, as many micro
batches as the tokens of a batch ask for: the last round is enough. A search that evaluates a function until its
values are good enough (L-BFGS with a closure, `scipy.optimize`) is such a loop too, where the values are the rank's
own.

## Example
```python
import torch.distributed as dist


def evaluate(files, score):
    mine = files[dist.get_rank() :: dist.get_world_size()]
    for file in mine:
        dist.all_reduce(score(file))
```

## Use instead
Give every rank the same number of rounds, and reduce once behind the loop where the result allows it:

```python
import torch
import torch.distributed as dist


def evaluate(files, score):
    mine = files[dist.get_rank() :: dist.get_world_size()]
    total = torch.zeros(())
    for file in mine:
        total += score(file)
    dist.all_reduce(total)
```

`DistributedSampler` pads or drops to equal lengths; `Join` lets ranks with fewer batches shadow the others.

## Known limits
The length of a loader or a list is taken to be the same on every rank unless something in the code says
otherwise: a share by rank, a filter on data, a generator over local files, or that the ranks sum it up
(`dist.all_reduce(torch.tensor(len(rollout)))`).
A dict that some ranks alone have emptied is taken to have other keys there, also where all put the same ones in again.
Inside `Join` or `join_uneven_inputs` only collectives count that the program calls itself, as nothing calls them for
a rank that has run out; with `throw_on_early_termination`, or where an own class notifies the context, none does.

## Fix safety
No fix.

## References
- [DDP with uneven inputs](https://docs.pytorch.org/tutorials/advanced/generic_join.html)
-
  [DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.nodes import OWN_IN_JOIN
from .registry import rule
from .support import from_divergence
from .support_claims import claimed, where_repeated

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(code="SPG401", name="rank-varying-trip-count", severity="error", status="stable", page=__doc__)
HELP = "give every rank as many rounds (DistributedSampler, drop_last, a min-reduced count), or use Join"
HELP_JOIN = "call it once behind the block: `join` stands in for what the wrapped model exchanges, and for nothing else"
HELP_SEARCH = "let the function return what all ranks agree on, such as the mean of their losses"


def check(analysis: Analysis) -> Iterable[Finding]:
    """For loops whose length differs between ranks."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = (
            f"`{divergence.condition_text}` may run a different number of times on each rank, "
            f"and each round calls `{divergence.text}`"
        )
        if divergence.operation is None:
            message = f"`{divergence.condition_text}` may have no round on some ranks, and a round leaves"
        if divergence.form == "items":
            message = f"`{divergence.text}` may communicate another number of times on each rank: once for each item"
        if divergence.form == "search" and divergence.operation is not None:
            message = (
                f"`{divergence.text}` evaluates its function as often as values of this rank ask for, "
                f"and each time calls `{divergence.operation.text}`"
            )
            yield from_divergence(RULE, divergence, message, HELP_SEARCH)
            continue
        shown = HELP_JOIN if OWN_IN_JOIN in divergence.regions else HELP
        yield from_divergence(RULE, divergence, message, shown, place=where_repeated(divergence))
