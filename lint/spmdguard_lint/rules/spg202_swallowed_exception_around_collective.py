"""
# swallowed-exception-around-collective (SPG202)

## What it does
Finds exception handlers that go on after a body with collectives, and collectives that depend on whether an
exception was caught; also those that a loop calls in each round, while an exception on one rank decides about another.

## Why is this bad
An exception seldom hits all ranks: one has the corrupt file, the full disk, the odd batch. The rank that
catches it skips the rest of the body and goes on; the others are still inside the body and wait in a
collective that this rank will not call any more. From there on the ranks are out of step: the next
collective of one meets the previous one of the others. So it is with an `__exit__` that swallows what its block has
raised and returns before the barrier that it calls otherwise. A rank that tries again what has failed, in a loop with a
barrier in each round, calls one barrier more than the others. An interrupt (Ctrl-C) comes to each rank at another
line, or to one rank only, and parts them in the same way.

## Example
```python
import torch.distributed as dist


def epoch(model, loader):
    for batch in loader:
        try:
            loss = model(batch)
            dist.all_reduce(loss)
        except Exception as error:
            print("skipping a batch:", error)
            continue
```

## Use instead
Keep the collective out of the try body, and give every rank something to contribute:

```python
import torch
import torch.distributed as dist


def epoch(model, loader):
    for batch in loader:
        try:
            loss = model(batch)
        except ValueError:
            loss = torch.zeros(())
        dist.all_reduce(loss)
```

An exception out of a collective itself cannot be repaired on one rank: let it pass, so that the job ends.

## Known limits
Handlers that raise again, or leave the process, are no findings, nor those behind which a rank comes to nothing but the
end of its process with a status that tells of the error (of a status that functions hand on, one `return` is seen). A
handler for a narrow class of exception (`KeyError`) counts only where the body opens files or talks to a network; one
that the body itself raises under a condition that all ranks share is taken for ordinary control flow. One for
`KeyboardInterrupt` counts only around a loop with collectives, and where the rank goes on to a collective.

## Fix safety
No fix: what a rank should contribute in place of the failed part is the author's choice.

## References
- `spmdguard.rank_local` keeps a local error for later, so that ranks stay in step
- SPG203, the same for batches skipped after running out of memory
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.handlers import may_fail
from ..traces.nodes import Call, Try, every_node
from ..traces.pointing import indirect
from ..values.value import Place
from .registry import rule
from .support import from_divergence, moved, operation_text
from .support_claims import claimed, where
from .support_exits import swallowed_past
from .support_trees import Step, finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..traces.divergence import Divergence

RULE = rule(
    code="SPG202",
    name="swallowed-exception-around-collective",
    severity="error",
    status="stable",
    page=__doc__,
)
HELP_EXIT = "let every rank that leaves the block call the collective, or let the exception go on"
HELP_AGAIN = (
    "put the collective before or behind the loop, and agree there on whether all ranks have succeeded"
)
HELP = "keep the collective out of the `try` body, or raise again: the others wait for the rank that skips it"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Handlers that go on, and branches on whether an exception was caught."""
    for divergence in claimed(analysis.divergences, RULE.code):
        help_text = HELP_AGAIN if "again" in divergence.extra else HELP
        yield _at_operation(divergence, from_divergence(RULE, divergence, _message(divergence), help_text))
    done: set[Place] = set()
    for root in analysis.roots if _has_exits(analysis) else ():
        for step in root.steps if root.contents.ops else ():
            yield from _by_exit(step, done)


def _has_exits(analysis: Analysis) -> bool:
    return any(b"def __exit__" in module.source.content for module in analysis.project.relevant_modules())


def _by_exit(step: Step, done: set[Place]) -> Iterator[Finding]:
    """An ``__exit__`` that swallows what its block has raised, past a collective of the ranks without an error."""
    node = step.node
    if not isinstance(node, Try) or node.form != "with" or not may_fail(node.body):
        return
    swallowed = swallowed_past(node.final)
    if swallowed is None or swallowed[0].place in done:
        return
    jump, op = swallowed
    done.add(jump.place)
    message = f"`{jump.text}` of the exit swallows an error of this rank, past `{op.text}` of the others"
    yield finding_at(RULE, jump, message, HELP_EXIT, calls=step.calls, reached=op)


def _at_operation(divergence: Divergence, found: Finding) -> Finding:
    """The finding, which points at the operation where the clause stands in a wrapper that knows nothing of it."""
    node, op = divergence.node, divergence.operation
    if divergence.shape != "swallow" or not isinstance(node, Try) or op is None:
        return found
    call = next((call for call in node.body if isinstance(call, Call) and op in every_node(call.body)), None)
    if call is None or not (indirect(call) or call.name.endswith("<lambda>")):
        return found
    return moved(found, op.place, f"`{divergence.condition_text}` goes on around `{call.text}`")


def _message(divergence: Divergence) -> str:
    operation = operation_text(divergence)
    if divergence.shape != "swallow":
        return f"`{divergence.text}` runs only {where(divergence)}, which an exception on one rank decides"
    clause = divergence.condition_text
    if "again" in divergence.extra:
        return f"`{clause}` tries again on this rank alone, and each round calls `{operation}`"
    return f"`{clause}` goes on after an exception that skips `{operation}` on this rank alone"
