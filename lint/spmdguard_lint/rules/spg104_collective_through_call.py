"""
# collective-through-call (SPG104)

## What it does
Finds calls, made by some ranks only, of a function that calls a collective further down.

## Why is this bad
The call looks like local work: `save(...)`, `log(...)`, `evaluate(...)`. That some function below it
reduces a metric or gathers a sharded state is invisible at the branch, and often true only since a later
change. The ranks outside the branch never join, and the job hangs.

## Example
```python
import torch.distributed as dist


def mean_over_ranks(value):
    dist.all_reduce(value)
    return value / dist.get_world_size()


def report(loss):
    if dist.get_rank() == 0:
        print("loss", mean_over_ranks(loss).item())
```

## Use instead
```python
import torch.distributed as dist


def mean_over_ranks(value):
    dist.all_reduce(value)
    return value / dist.get_world_size()


def report(loss):
    mean = mean_over_ranks(loss)
    if dist.get_rank() == 0:
        print("loss", mean.item())
```

## Known limits
Calls are followed nine levels deep, through methods, closures, decorators, context managers and functions
kept in containers, as far as their targets can be told from the source. A target that only run time knows
(a plug-in, a registry filled by string) is not followed.

## Fix safety
Unsafe: moving the call out of the branch also moves what else the function does. The fix moves the statement, or
evaluates the call before the branch into a new name and uses that inside; see SPG101 for when there is none. A
function that writes a file, prints or publishes, and meets the other ranks, is not moved: let it keep the write to
one rank and meet outside of that.

## References
- SPG502 (collective-save-on-main-only) is reported here: a sharded save that one rank makes alone is a collective
  in its branch, seen directly (SPG101) or behind a call (SPG104)
- [talmolab/sleap-nn#476](https://github.com/talmolab/sleap-nn/pull/476): a property that reduces, read
  under `is_global_zero`
- SPG101, the same with the collective in plain sight
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from .registry import rule
from .support import from_divergence, operation_text
from .support_claims import claimed, where
from .support_moves import with_move_marks

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG104",
    name="collective-through-call",
    severity="error",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
HELP = "make the call on every rank and use its result inside the branch"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Followed calls in one arm of a branch on the rank."""
    for divergence in claimed(analysis.divergences, RULE.code):
        operation = operation_text(divergence)
        reaches = "" if operation == divergence.text else f" reaches `{operation}` and"
        message = f"`{divergence.text}`{reaches} runs only {where(divergence)}"
        yield with_move_marks(from_divergence(RULE, divergence, message, HELP), divergence)
