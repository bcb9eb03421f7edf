"""
# send-before-receive (SPG109)

## What it does
Finds blocking `send` calls that every rank makes before any rank receives.

## Why is this bad
A blocking send may return only when the other side has begun to receive. Where all ranks send first, each waits
for a partner that waits in its own send: on NCCL the job hangs in the first round, on other backends as soon as a
message is larger than the buffers.

## Example
```python
import torch
import torch.distributed as dist


def exchange(x):
    peer = dist.get_rank() ^ 1
    received = torch.empty_like(x)
    dist.send(x, dst=peer)
    dist.recv(received, src=peer)
    return received
```

## Use instead
```python
import torch
import torch.distributed as dist


def exchange(x):
    peer = dist.get_rank() ^ 1
    received = torch.empty_like(x)
    ops = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, received, peer)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return received
```

or let the even ranks send first and the odd ones receive first.

## Known limits
Judged where the partner is computed from rank and world size, on the default group, in worlds of 2 and 4.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#point-to-point-communication
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.divergence import group_key
from ..traces.nodes import Op
from ..values.evaluate import Valuation, evaluate
from .registry import rule
from .support_trees import Step, finding_at, reaching, steps

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Value

RULE = rule(code="SPG109", name="send-before-receive", severity="warning", status="stable", page=__doc__)
HELP = "use `batch_isend_irecv`, or let half of the ranks receive first"
_WORLDS = ((2, 2), (4, 2))


def check(analysis: Analysis) -> Iterable[Finding]:
    """Blocking sends in which all ranks stand at once, with the receive behind."""
    for root in analysis.roots:
        if not {"send", "recv"} <= root.contents.ops:
            continue
        received = False
        waiting: list[Step] = []
        for step in steps(root.tree):
            op = step.node
            if not isinstance(op, Op) or op.kind != "point-to-point" or group_key(op) is not None:
                continue
            if op.name == "send" and not received and everyone(step):
                waiting.append(step)
            elif op.name in ("recv", "irecv"):
                received = True
                if waiting and op.name == "recv" and everyone(step):
                    first = waiting[0]
                    message = f"every rank is in `{getattr(first.node, 'text', '')}` before any comes to `{op.text}`"
                    yield finding_at(RULE, first.node, message, HELP, calls=first.calls, reached=op)
                    break


def everyone(step: Step) -> bool:
    """Whether all ranks come to a call, each with a partner that is another rank of the job."""
    partner: Value | None = getattr(step.node, "root", None)
    if partner is None:
        return False
    for world, local in _WORLDS:
        for rank in range(world):
            at = Valuation(rank, world, local)
            other = evaluate(partner, at)
            if not reaching(step.path, at) or not isinstance(other, int) or other not in range(world):
                return False
            if other == rank:
                return False
    return True
