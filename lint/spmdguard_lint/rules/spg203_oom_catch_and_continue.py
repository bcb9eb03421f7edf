"""
# oom-catch-and-continue (SPG203)

## What it does
Finds handlers that skip a batch, or try again, after running out of device memory around a collective.

## Why is this bad
Memory runs out on the rank that got the longest batch, not on all. That rank drops the batch and takes the
next one, while the others are in the backward pass and wait for its gradients: with DDP, FSDP or DeepSpeed
`backward()` is a collective. A handler that repeats the step is no better: the collectives that were done before
memory ran out are done twice on this rank. The recipe is right on one GPU and is copied from there.

## Example
```python
import torch
import torch.distributed as dist


def train(model, optimizer, loader):
    for batch in loader:
        try:
            loss = model(batch)
            dist.all_reduce(loss)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            continue
        optimizer.step()
```

## Use instead
Decide together whether to skip, before anything collective happens:

```python
import torch
import torch.distributed as dist


def train(model, optimizer, loader, longest):
    for batch in loader:
        too_long = torch.tensor(int(batch.shape[1] > longest))
        dist.all_reduce(too_long, op=dist.ReduceOp.MAX)
        if too_long.item():
            continue
        loss = model(batch)
        dist.all_reduce(loss)
        optimizer.step()
```

## Known limits
A handler is about memory when it names `OutOfMemoryError` or compares the message with "out of memory";
other handlers around collectives are SPG202. Libraries that retry with a smaller batch on their own are
seen only where they are known.

## Fix safety
No fix.

## References
- [facebookresearch/fairseq#3989](https://github.com/facebookresearch/fairseq/pull/3989): one worker
  recovers from running out of memory, the others wait for it
- [CUDA semantics: out of
  memory](https://docs.pytorch.org/docs/stable/notes/faq.html#my-out-of-memory-exception-handler-can-t-allocate-memory)
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

RULE = rule(code="SPG203", name="oom-catch-and-continue", severity="error", status="stable", page=__doc__)
HELP = "agree with all ranks on skipping the batch before any collective, or let the error end the job"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Handlers for memory errors that go on after a body with collectives."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = (
            f"`{divergence.condition_text}` goes on after this rank ran out of memory; "
            f"the other ranks wait in `{operation_text(divergence)}`"
        )
        yield from_divergence(RULE, divergence, message, HELP)
