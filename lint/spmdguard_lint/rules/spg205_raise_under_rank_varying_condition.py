"""
# raise-under-rank-varying-condition (SPG205)

## What it does
Finds `raise` statements under a condition that some ranks meet and others do not, with collectives after
them; and calls that cannot succeed, made by one rank alone: a tensor, a set or an instance written as JSON.

## Why is this bad
The check itself is right: a NaN, a bad shard, a missing key should end the job. But it ends one rank. The
others go on to the next collective and wait there for the timeout, and what they print when it comes ("NCCL
watchdog timeout") buries the one message that says what happened. A verdict that is shared after a `try` with
collectives in it meets those: the rank that has caught an error is a collective ahead of the others.

## Example
```python
import torch
import torch.distributed as dist


def train(model, loader):
    for batch in loader:
        loss = model(batch)
        if torch.isnan(loss):
            raise ValueError("loss became NaN")
        dist.all_reduce(loss)
```

## Use instead
Share the verdict first, so that every rank raises:

```python
import torch
import torch.distributed as dist


def train(model, loader):
    for batch in loader:
        loss = model(batch)
        bad = torch.isnan(loss).int()
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad.item():
            raise ValueError("loss became NaN")
        dist.all_reduce(loss)
```

## Known limits
A `raise` that its own function catches is followed to the handler. Checks that are the same on every rank
(arguments, configuration, the world size) are no findings. Preconditions that ask the file system, the
environment or a random number end all ranks alike as a rule: their certainty is `possible`. So is that of a
check on one rank under a further test which all ranks share, but for one of a number that is not finite. An
`assert` is taken to hold, but for one on numbers that are not finite, of a loss or in a loop. A launcher that
kills all ranks when one fails (torchrun does, after some seconds) turns the hang into a late end; the finding is
still worth reading, since the message of the failing rank is then the last to be seen. Of calls that cannot
succeed only those of `json.dump` and `json.dumps` are known.

## Fix safety
No fix: the agreement costs a collective.

## References
- `spmdguard.rank_local` and `sync_should_stop`: the error is kept, ranks meet, then the original is raised
- [torchelastic error propagation](https://docs.pytorch.org/docs/stable/elastic/errors.html)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from ..model import Certainty, Finding
from ..traces.files import guarded_by_rank, parts_of
from ..traces.matching import worlds_for
from ..traces.nodes import Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from ..values.evaluate import Valuation, rank_dependent, residual, truth
from ..values.value import SET_LATER
from .registry import rule
from .support import from_divergence, moved
from .support_claims import awaited, claimed, is_entry, where
from .support_events import cared_for, counts, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..traces.divergence import Divergence
    from ..values.value import Value

RULE = rule(
    code="SPG205",
    name="raise-under-rank-varying-condition",
    severity="warning",
    status="stable",
    page=__doc__,
)
HELP_TOLD = (
    "keep the collectives out of the `try`: tell the verdict on what may fail first, then go on to them"
)
HELP = "share the verdict before raising (all_reduce a flag), or defer the error with `@rank_local`"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Exits by a raise."""
    for divergence in claimed(analysis.divergences, RULE.code):
        if divergence.form in ("next", "missing"):  # nobody counts on the end of the items
            continue
        if is_entry(divergence.operation):  # what a metric cannot take is a precondition of its update
            continue
        told = _told_too_late(divergence)
        if told is not None:
            yield told
            continue
        others = awaited(divergence)
        message = f"`{divergence.text}` raises only {where(divergence)}; the other ranks go on to {others}"
        certainty: Certainty | None = None if _telling(divergence) else "possible"
        yield from_divergence(RULE, divergence, message, HELP, certainty=certainty)
    for root in reading(analysis):
        if root.contents.sure and root.contents.ops:
            walk = _Certain()
            walk.run(root.tree, "")
            yield from walk.found.values()


def _told_too_late(divergence: Divergence) -> Finding | None:
    """A caught error that ranks tell one another in a collective, while those without one are at an earlier one."""
    op = divergence.meets
    if not divergence.caught or op is None or not op.tells:
        return None
    message = (
        f"`{op.text}` tells that `{divergence.text}` was caught, while the ranks without an error are still at "
        "the collectives behind it, in the same `try`"
    )
    found = from_divergence(RULE, divergence, message, HELP_TOLD)
    return moved(found, op.place, f"`{divergence.text}` raises {where(divergence)}")


class _Certain(Walk):
    """State: the call that has raised on some ranks alone since the last collective, or ""."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if (
            isinstance(node, Fallible)
            and node.sure
            and state == ""
            and guarded_by_rank(where)
            and not cared_for(where)
        ):
            self.ways.setdefault(node, where)
            return node
        if not isinstance(node, Op) or not counts(node) or guarded_by_rank(where):
            return state
        if isinstance(state, Fallible) and node.name not in ("init_process_group", "destroy_process_group"):
            message = (
                f"`{state.text}` raises on its rank ({state.sure}); the other ranks go on to `{node.text}`"
            )
            self.found.setdefault(
                state,
                finding(
                    RULE,
                    state,
                    message,
                    "write what JSON has a form for (`.item()`, `.tolist()`), and defer what may still fail",
                    steps=[(node.place, f"`{node.text}` is where the other ranks wait")],
                    where=self.ways.get(state),
                ),
            )
        return ""


def _telling(divergence: Divergence) -> bool:
    """Whether the condition looks for what one rank alone may have, and is no precondition of all ranks.

    What a handler catches and goes on after, as a repeated attempt does, is no precondition.
    """
    if divergence.caught:
        return True
    kinds = {taint.kind for taint in divergence.taints}
    if kinds & {"data", "signal", "time", "exception"}:
        return True
    if not kinds & {"rank", "group-rank"} or divergence.condition is None:
        return False
    if not rank_dependent(divergence.condition):
        return True
    decide = residual if set_later(divergence.condition) else truth
    verdicts = {
        decide(divergence.condition, Valuation(rank, world, local))
        for world, local, ranks in worlds_for(divergence.condition)
        for rank in ranks
    }
    return len(verdicts) > 1


def set_later(condition: Value) -> bool:
    """Whether a condition asks for a rank that some function sets: it may still be what it was at first."""
    labels = (part.data[0] for part in parts_of(condition) if part.tag == "sym")
    return any(isinstance(label, tuple) and label[:1] == (SET_LATER,) for label in labels)
