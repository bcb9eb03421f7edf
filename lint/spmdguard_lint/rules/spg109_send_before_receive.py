"""
# send-before-receive (SPG109)

## What it does
Finds blocking `send` calls that every rank makes before any rank receives, and those of some ranks that wait for one
another in their sends.

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
Judged where the partner is computed from rank and world size, on the default group, in those worlds of 2 and 4 that the
program does not refuse (`assert world_size == 2`).

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
from .support_messages import Outcome, Play, runs_through, scripts_of, valid
from .support_numbers import worlds_of
from .support_trees import Step, finding_at, reaching

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..traces.nodes import Tree
    from ..values.value import Value

RULE = rule(code="SPG109", name="send-before-receive", severity="warning", status="stable", page=__doc__)
MEET = "call the collective on every rank before the messages, or behind them"
HELP = "use `batch_isend_irecv`, or let half of the ranks receive first"
_WORLDS = ((2, 2), (4, 2))


def check(analysis: Analysis) -> Iterable[Finding]:
    """Blocking sends in which ranks stand at once, with the receive behind."""
    for root in analysis.roots:
        if {"send", "recv"} <= root.contents.ops:
            finding = _all_send(root) or _some_send(root)
            if finding is not None:
                yield finding


def _all_send(root: Root) -> Finding | None:
    """A send that every rank makes before any receives."""
    waiting: list[Step] = []
    for step in root.steps:
        op = step.node
        if not isinstance(op, Op) or op.kind != "point-to-point" or group_key(op) is not None:
            continue
        if op.name == "send" and everyone(step, root.tree):
            waiting.append(step)
        elif op.name in ("recv", "irecv"):
            if not waiting or op.name != "recv" or not everyone(step, root.tree):
                return None
            first = waiting[0]
            message = f"every rank is in `{getattr(first.node, 'text', '')}` before any comes to `{op.text}`"
            return finding_at(RULE, first.node, message, HELP, calls=first.calls, reached=op)
    return None


def _some_send(root: Root) -> Finding | None:
    """Sends of some ranks, each of which waits for another one of them, although all would end with large buffers."""
    for world, local in worlds_of(root.tree, _WORLDS):
        scripts = scripts_of(root.tree, world, local)
        if scripts is None or scripts.rough or not valid(scripts) or not runs_through(scripts.moves):
            return None
        outcome = Play(scripts.moves, eager=False).run()
        circle = outcome.circle()
        sending = [rank for rank in circle if outcome.stuck[rank].kind == "send"]
        if circle and not sending:
            return _root_first(outcome, circle)
        if sending:
            move = outcome.stuck[sending[0]]
            other = outcome.stuck[circle[(circle.index(sending[0]) + 1) % len(circle)]]
            where = "its own" if other.node.place == move.node.place else f"`{other.text}`"
            message = f"rank {sending[0]} is in `{move.text}`, and the rank that would receive is in {where}"
            return finding_at(RULE, move.node, message, HELP, calls=move.calls, reached=other.node)
    return None


def _root_first(outcome: Outcome, circle: list[int]) -> Finding | None:
    """A rank that receives before it comes to a collective, whose root sends only behind it."""
    waiting = [rank for rank in circle if rank not in outcome.meeting]
    if not waiting or len(waiting) == len(circle):
        return None
    rank = waiting[0]
    following = circle[(circle.index(rank) + 1) % len(circle)]
    move, other = outcome.stuck[rank], outcome.stuck[following]
    message = f"rank {rank} is in `{move.text}`, and rank {following} sends only behind `{other.text}`"
    return finding_at(RULE, move.node, message, MEET, calls=move.calls, reached=other.node)


def everyone(step: Step, tree: Tree) -> bool:
    """Whether all ranks come to a call, each with a partner that is another rank of the job.

    Worlds that the program refuses, or in which partners do not exist, say nothing.
    """
    partner: Value | None = getattr(step.node, "root", None)
    if partner is None:
        return False
    played = False
    for world, local in worlds_of(tree, _WORLDS):
        ranks = [Valuation(rank, world, local) for rank in range(world)]
        others = [evaluate(partner, at) for at in ranks]
        if not all(isinstance(other, int) for other in others):
            return False
        if not all(other in range(world) for other in others):
            continue
        if not all(
            reaching(step.path, at) and other != at.rank for at, other in zip(ranks, others, strict=True)
        ):
            return False
        played = True
    return played
