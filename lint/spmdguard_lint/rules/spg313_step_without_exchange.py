"""
# step-without-exchange (SPG313)

## What it does
Finds loops with gradient accumulation in which the optimizer applies gradients that were not exchanged: the backward
pass before the step ran under `no_sync()`.

## Why is this bad
Under `no_sync()` every rank adds up gradients of its own, and the first backward pass outside of it exchanges them.
When that is not the last one before `optimizer.step()`, each rank takes a step of its own. Nothing hangs and nothing is
reported: the ranks train different models from then on.

## Example
```python
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, window):
    model = DDP(net)
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(batches):
        with model.no_sync() if i % window != 0 else nullcontext():
            model(batch).mean().backward()
        if (i + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
```

## Use instead
One variable that says both:

```python
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, window):
    model = DDP(net)
    optimizer = torch.optim.AdamW(model.parameters())
    for i, batch in enumerate(batches):
        last = (i + 1) % window == 0
        with nullcontext() if last else model.no_sync():
            model(batch).mean().backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
```

A step for what is left at the end (`or i + 1 == len(batches)`) belongs into the same condition.

## Known limits
Conditions are played through for small windows and loops where they are made of the position in the loop, the window
(what a `%` divides by), the length of what the loop runs over, and switches that stay as they are; other conditions are
left alone, and so are loops with several optimizers and those in which no backward pass exchanges anything (local SGD).

## Fix safety
No fix.

## References
- [DistributedDataParallel.no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.nodes import Loop, Node, every_node
from .registry import rule
from .support_trees import finding_at
from .support_windows import backs_alone, is_step, unexchanged

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..traces.nodes import Tree

RULE = rule(code="SPG313", name="step-without-exchange", severity="warning", status="stable", page=__doc__)
HELP = "let one condition decide about both: leave `no_sync` for the backward pass before each step"


def check(analysis: Analysis) -> Iterable[Finding]:
    """The innermost loops around both a stretch without exchange and a step."""
    for root in analysis.roots:
        if "no-sync" not in root.contents.regions:
            continue
        for step in root.steps:
            if not isinstance(step.node, Loop) or not _accumulates(step.node):
                continue
            found = unexchanged(step.node)
            if found is not None:
                message = (
                    f"`{_text(found.step)}` may apply gradients that are this rank's own: "
                    f"`{found.backward.text}` before it runs under `no_sync`"
                )
                yield finding_at(RULE, found.decided, message, HELP, calls=step.calls, reached=found.backward)


def _text(node: Node) -> str:
    return str(getattr(node, "text", ""))


def _accumulates(loop: Loop) -> bool:
    """Whether a loop, and no loop in it, has backward passes with and without exchange and steps of one optimizer."""
    if not _has_both(loop.body):
        return False
    if any(isinstance(node, Loop) and _has_both(node.body) for node in every_node(loop.body)):
        return False
    return len({_text(node) for node in _steps(loop.body)}) == 1


def _has_both(tree: Tree) -> bool:
    return any(backs_alone(node) for node in every_node(tree)) and any(True for _ in _steps(tree))


def _steps(tree: Tree) -> Iterator[Node]:
    return (node for node in every_node(tree) if is_step(node))
