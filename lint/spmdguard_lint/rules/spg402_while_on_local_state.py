"""
# while-on-local-state (SPG402)

## What it does
Finds `while` loops that call collectives and end when this rank's own state says so, and such loops in which
neighbours swap messages until a number computed from this rank's own part (a largest change, a norm) is small enough.

## Why is this bad
`while not converged`, `while queue`, `while loss > tolerance`: each rank decides for itself when to stop.
The first to stop goes on; the others call the loop's collective once more and wait for it.

## Example
```python
import torch.distributed as dist


def solve(residual, update):
    error = residual(dist.get_rank())
    while error > 1e-6:
        dist.all_reduce(update())
        error = residual(dist.get_rank())
```

## Use instead
Test a value that all ranks share:

```python
import torch
import torch.distributed as dist


def solve(residual, update):
    error = torch.tensor(residual(dist.get_rank()))
    dist.all_reduce(error, op=dist.ReduceOp.MAX)
    while error > 1e-6:
        dist.all_reduce(update())
        error = torch.tensor(residual(dist.get_rank()))
        dist.all_reduce(error, op=dist.ReduceOp.MAX)
```

## Known limits
A loop that ends on the clock is SPG302, on a signal's flag SPG308. Loops without collectives in them may end when
they like. `while True` with a `break` is judged at the `break` (SPG102), and not where only messages are exchanged;
there the number must be computed in the loop's condition. Loops that end with a message (a token that comes back) are
left alone.

## Fix safety
No fix: the agreement costs a collective for each round.

## References
- [MPI: A Message-Passing Interface Standard](https://www.mpi-forum.org/docs/), chapter on collective
  communication, section "Correctness"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.divergence import variance
from ..traces.nodes import Branch, Event, Loop, Op, Tree, every_node
from ..values.evaluate import rank_dependent
from ..values.value import Value, parts_of
from .registry import rule
from .support import from_divergence
from .support_batches import is_message
from .support_claims import claimed, where_repeated
from .support_events import reading
from .support_messages import MESSAGES, RECEIVES, SENDS
from .support_trees import Step, finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(code="SPG402", name="while-on-local-state", severity="error", status="stable", page=__doc__)
HELP = "reduce the condition's value over all ranks before testing it"


_BOUNDS = frozenset({"<", "<=", ">", ">="})
_WHOLE = frozenset({"max", "amax", "min", "amin", "sum", "mean", "norm", "vector_norm"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """While loops whose condition differs between ranks."""
    for divergence in claimed(analysis.divergences, RULE.code):
        message = (
            f"`{divergence.condition_text}` ends when this rank's own state says so, "
            f"and each round calls `{divergence.text}`"
        )
        if divergence.operation is None:
            message = f"`{divergence.condition_text}` may have no round on some ranks, and a round leaves"
        yield from_divergence(RULE, divergence, message, HELP, place=where_repeated(divergence))
    yield from _swapping(analysis)


def _swapping(analysis: Analysis) -> Iterator[Finding]:
    """Loops in which all ranks swap messages, until a number of this rank's own is small enough."""
    for root in reading(analysis):
        for step in root.steps if root.contents.ops & MESSAGES else ():
            node = step.node
            if not isinstance(node, Loop) or node.form != "while" or not _for_everyone(step):
                continue
            taints = tuple(t for t in variance(node.trip) if t.certainty != "possible")
            if taints and _ends_by_size(node) and _swaps(node.body):
                message = (
                    f"`{node.text}` ends when this rank's own state says so, and each round swaps messages"
                )
                yield finding_at(RULE, node, message, HELP, taints=taints[:2], calls=step.calls)


def _for_everyone(step: Step) -> bool:
    return not any(isinstance(node, Branch) and rank_dependent(node.condition) for node, _ in step.path)


def _ends_by_size(loop: Loop) -> bool:
    """Whether a loop's condition compares what a whole tensor comes to (its norm, its largest element) with a bound."""
    for node in loop.body:
        if isinstance(node, Branch) and node.form == "while":
            return any(_is_bound(part) for part in parts_of(node.condition))
    return False


def _is_bound(value: Value) -> bool:
    if value.tag != "expr" or value.data[0] not in _BOUNDS:
        return False
    inside = (part.data[0] for part in parts_of(value) if part.tag == "expr")
    return any(str(name).rpartition(".")[2].removeprefix("call:") in _WHOLE for name in inside)


def _swaps(body: Tree) -> bool:
    """Whether a round sends and receives, and communicates in no other way."""
    said: set[str] = set()
    for node in every_node(body):
        if isinstance(node, Op):
            if node.kind != "point-to-point":
                return False
            said.add(node.name)
        elif isinstance(node, Event) and is_message(node):
            said.update(name for name in ("isend", "irecv") if name in node.text)
    return bool(said & SENDS and said & RECEIVES)
