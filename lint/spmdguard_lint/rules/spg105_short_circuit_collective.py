"""
# short-circuit-collective (SPG105)

## What it does
Finds collectives inside an expression that some ranks do not evaluate: behind `and` or `or`, or in one
arm of `a if condition else b`.

## Why is this bad
`rank == 0 and dist.all_reduce(x)` reads as a test, but is a branch: on the other ranks the right-hand
side is never evaluated, and the collective never called. It is easily made by putting a cheap test in
front of an expensive one "to save the call".

## Example
```python
import torch.distributed as dist


def all_done(flag):
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return flag.item()


def finished(flag, local_done):
    is_main = dist.get_rank() == 0
    return is_main and all_done(flag)
```

## Use instead
```python
import torch.distributed as dist


def all_done(flag):
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return flag.item()


def finished(flag, local_done):
    done = all_done(flag)
    is_main = dist.get_rank() == 0
    return is_main and done
```

## Known limits
As for SPG101. `any(...)` and `all(...)` over a generator stop early too, which is not looked at.

## Fix safety
No fix yet; evaluating the collective first is right in nearly every case.

## References
- [Python reference: boolean
  operations](https://docs.python.org/3/reference/expressions.html#boolean-operations)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from .registry import rule
from .support import from_divergence
from .support_claims import claimed

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(code="SPG105", name="short-circuit-collective", severity="error", status="stable", page=__doc__)
HELP = "evaluate the collective first, on every rank, and combine its result afterwards"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations in a part of an expression that the rank decides on."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = (
            f"`{divergence.text}` is evaluated only on some ranks: `{divergence.condition_text}` decides"
        )
        yield from_divergence(RULE, divergence, message, HELP)
