"""
# collective-in-exception-path (SPG206)

## What it does
Finds collectives in an `except` or `finally` block that runs on the rank that failed while the others are
still inside the try body.

## Why is this bad
A barrier "to be safe" in the handler is the surest way to hang: the failed rank waits in it, the others wait in
the collective of the try body, and the exception that would explain everything is not printed, since the
handler never ends. In a `finally` block the same barrier looks harmless, because on the good path it is.
`destroy_process_group()` in `finally` does the same on NCCL, where it waits for work in flight.

## Example
```python
import torch.distributed as dist


def run(trainer):
    try:
        trainer.fit()
        dist.all_reduce(trainer.total)
    finally:
        dist.barrier()
```

## Use instead
```python
import torch.distributed as dist


def run(trainer):
    trainer.fit()
    dist.all_reduce(trainer.total)
    dist.barrier()
```

On the way out after an error no rank may wait for another: leave, and let the launcher end the rest.
`spmdguard.run` is that order ready made.

## Known limits
A `finally` block around work without collectives (reading a file that another rank may delete afterwards) is
right: every rank comes there, failed or not. So is a handler whose collective is met by the others as well.

## Fix safety
No fix: the collective belongs behind the try statement, but what else the block does may not.

## References
- [pytorch/pytorch#196968](https://github.com/pytorch/pytorch/issues/196968): `destroy_process_group` blocks after a failure
- SPG604, the same for a barrier on the emergency path of a guarded run
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from .registry import rule
from .support import from_divergence, operation_text
from .support_claims import claimed

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG206", name="collective-in-exception-path", severity="error", status="stable", page=__doc__
)
HELP = "no collective on the way out of an error: move it behind the `try`, and let the failed rank leave at once"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations in handlers that the other ranks do not meet."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = (
            f"`{divergence.text}` in `{divergence.condition_text}` runs only on the rank that caught the exception"
        )
        if operation_text(divergence) != divergence.text:
            message = f"`{divergence.text}` reaches `{operation_text(divergence)}`" + message.partition("`")[2].partition("`")[2]
        yield from_divergence(RULE, divergence, message, HELP)
