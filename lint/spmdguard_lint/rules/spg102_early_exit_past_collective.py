"""
# early-exit-past-collective (SPG102)

## What it does
Finds a `return`, `break`, `continue` or `sys.exit()` that some ranks take, and others do not, past a
collective, and items that some ranks do not find where a handler is there for it (`shares[rank]` under
`except KeyError`).

## Why is this bad
The ranks that leave early never call the collectives that the others go on to call. Nothing at the place of
the exit shows it: the collective may stand a hundred lines below, in the next round of the loop, or in the
caller. The other ranks wait there until the timeout.

## Example
```python
import torch.distributed as dist


def average(metrics):
    if dist.get_rank() != 0 and not metrics:
        return None
    dist.all_reduce(metrics["loss"])
    return metrics["loss"] / dist.get_world_size()
```

## Use instead
Let every rank come to the collective, with a neutral contribution where it has none:

```python
import torch
import torch.distributed as dist


def average(metrics):
    loss = metrics["loss"] if metrics else torch.zeros(())
    dist.all_reduce(loss)
    return loss / dist.get_world_size()
```

or agree on the exit first, so that all ranks take it:

```python
import torch
import torch.distributed as dist


def train(model, loader):
    for batch in loader:
        loss = model(batch)
        bad = torch.isnan(loss).int()
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad.item():
            break
        dist.all_reduce(loss)
```

## Known limits
Followed up to the end of the outermost function that the analysis reaches; an exit past a collective in
an unknown caller is not seen. Conditions on this rank's own data (a loss, a batch) are of certainty
`likely`: nothing in the code proves that they differ, only that nothing makes them equal. An exit that is
decided by the clock, the file system, a random number, the environment or a signal is reported by SPG302
to SPG308 instead; a `raise` by SPG205.

## Fix safety
A branch that stands directly in a loop and ends in `break` or `return` gets an unsafe fix where the function trains
(runs a backward pass or steps an optimizer): `if sync_should_stop(condition): break`. It adds a collective to every
round, and every rank leaves as soon as one wants to. The agreement is one on the end of the whole run, so an
evaluation or a helper gets none. Other forms have no fix: whether ranks should agree on the
exit or contribute a neutral value is the author's choice.

## References
- [NVIDIA-NeMo/Automodel#2468](https://github.com/NVIDIA-NeMo/Automodel/pull/2468): a micro-batch skipped
  on one rank only
- `spmdguard.sync_should_stop` agrees on an exit at the end of a step
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..interpreter.iterating import DRY
from ..model import Finding
from ..traces.files import parts_of
from .registry import rule
from .support import from_divergence, moved
from .support_claims import awaited, claimed, leaving, where

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..traces.divergence import Divergence

RULE = rule(
    code="SPG102",
    name="early-exit-past-collective",
    severity="error",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
RUNNING_OUT = {"next": "comes to the end of this rank's own items", "missing": "finds no item on some ranks"}
HELP = "let every rank come to the collective, or agree on the exit first (`sync_should_stop`)"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Exits under a condition on the rank, on this rank's own data, or on a caught exception."""
    for divergence in claimed(analysis.divergences, RULE.code):
        left = f"{leaving(divergence)} {where(divergence)}"
        if divergence.form in RUNNING_OUT:
            left = f"`{divergence.condition_text}` {RUNNING_OUT[divergence.form]}"
        at_end = asks_for_end(divergence)
        if at_end:
            left = f"{left}, at the end of this rank's own items"
        message = f"{left}, while the other ranks go on to {awaited(divergence)}"
        place = divergence.condition_place if at_end else None
        found = from_divergence(RULE, divergence, message, HELP, place=place)
        yield found if divergence.handed is None else moved(found, divergence.handed.place, f"{left}")


def asks_for_end(divergence: Divergence) -> bool:
    """Whether an exit's condition asks what ``next(items, default)`` has given for the default."""
    condition = divergence.condition
    if condition is None or divergence.form in RUNNING_OUT:
        return False
    return any(
        part.tag == "sym" and isinstance(part.data[0], tuple) and part.data[0][:1] == (DRY,)
        for part in parts_of(condition)
    )
