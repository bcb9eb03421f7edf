"""
# local-gradient-norm (SPG312)

## What it does
Finds `torch.nn.utils.clip_grad_norm_` and `get_total_norm` on the parameters of a module that is wrapped in
`FullyShardedDataParallel`.

## Why is this bad
After the backward pass every rank holds the gradients of its own shards. The norm over them is that of a part of
the model, another one on each rank, and each rank scales its part by a factor of its own. Nothing hangs and nothing
is reported: the direction of the step is wrong wherever the threshold is passed, and the norm in the log is too
small.

## Example
```python
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(net, batches):
    model = FSDP(net)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead
The wrapper's own method takes the norm over all ranks:

```python
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(net, batches):
    model = FSDP(net)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).mean().backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
```

With `fully_shard` the parameters are DTensors, and torch's function is right.

## Known limits
Seen where the call that wraps the module can be followed to the one that clips. A module that is wrapped under a
condition is left alone, and one with `ShardingStrategy.NO_SHARD`. Parameters that were collected in a list first and
norms that the code sums up by hand are not seen.

## Fix safety
No fix.

## References
- [FullyShardedDataParallel.clip_grad_norm_](https://docs.pytorch.org/docs/stable/fsdp.html#torch.distributed.fsdp.FullyShardedDataParallel.clip_grad_norm_)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.files import parts_of
from ..traces.nodes import Branch, Event, Op, every_node
from .registry import rule
from .support_trees import Path, finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Value

RULE = rule(code="SPG312", name="local-gradient-norm", severity="warning", status="stable", page=__doc__)
HELP = "call `clip_grad_norm_` of the wrapped module, which takes the norm over all ranks"
_FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
_NORMS = frozenset({"clip_grad_norm_", "get_total_norm"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Norms of torch that are taken over the shards of one rank."""
    roots = [root for root in analysis.roots if root.contents.ops & _NORMS]
    plain = _unsharded(analysis) if roots else frozenset()
    for root in roots:
        for step in root.steps:
            op = step.node
            if not isinstance(op, Op) or op.name not in _NORMS or _told_apart(step.path):
                continue
            wrapped = [place for value in op.tensors for place in _wrappers(value)]
            if wrapped and not plain & set(wrapped):
                message = f"`{op.text}` takes the norm over this rank's shards, not over all gradients"
                yield finding_at(RULE, op, message, HELP, calls=step.calls)


def _wrappers(value: Value) -> Iterable[object]:
    """Where the module was wrapped whose parameters a value holds; nothing where it may not have been."""
    for part in parts_of(value):
        if part.tag == "ite":
            return
    for part in parts_of(value):
        if part.tag == "extobj" and part.data[0] == _FSDP and isinstance(part.data[1], tuple):
            yield from part.data[1][1:2]


def _told_apart(path: Path) -> bool:
    """Whether a branch around asks what the module is."""
    asking = ("isinstance(", "hasattr(", "is_fsdp")
    return any(isinstance(node, Branch) and any(word in node.text for word in asking) for node, _ in path)


def _unsharded(analysis: Analysis) -> frozenset[object]:
    """Where a module is wrapped with every parameter whole, or by a strategy that may say so."""
    found: set[object] = set()
    for root in analysis.roots:
        if "wrap-module" not in root.contents.events:
            continue
        may_be_plain = b"NO_SHARD" in root.module.source.content
        for node in every_node(root.tree):
            if isinstance(node, Event) and node.name == "wrap-module" and node.call == _FSDP:
                strategy = node.keywords.get(
                    "sharding_strategy", node.args[2] if len(node.args) > 2 else None
                )
                if strategy is not None and _plain(strategy, may_be_plain):
                    found.add(node.place)
    return frozenset(found)


def _plain(strategy: Value, may_be: bool) -> bool:
    if strategy.tag == "ext":
        return str(strategy.data[0]).endswith("NO_SHARD")
    return may_be
