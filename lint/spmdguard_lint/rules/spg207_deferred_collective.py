"""
# deferred-collective (SPG207)

## What it does
Finds collectives inside code that is declared rank-local: a function under `@rank_local`, a `deferring`
block, a call through `try_or_defer`.

## Why is this bad
Deferral means: if this fails on one rank, that rank goes on as if nothing had happened, and the ranks
meet at the next agreement. With a collective inside, going on is exactly what must not happen: the failed
rank has skipped a collective in which the others wait. At run time `spmdguard` refuses the collective
(`CollectiveInRankLocalError`); this rule says so before the launch.

## Example
```python
import torch.distributed as dist
from spmdguard import rank_local


@rank_local
def log_metrics(tracker, loss):
    dist.all_reduce(loss)
    tracker.log({"loss": loss.item()})
```

## Use instead
Keep the collective out of the rank-local part:

```python
import torch.distributed as dist
from spmdguard import rank_local


@rank_local
def send(tracker, loss):
    tracker.log({"loss": loss.item()})


def log_metrics(tracker, loss):
    dist.all_reduce(loss)
    send(tracker, loss)
```

A function whose body is a collective of its own is declared with `@collective` instead.

## Known limits
Collectives behind calls that the analysis cannot resolve are found at run time only.

## Fix safety
No fix: the function has to be split.

## References
- `spmdguard.rank_local`, `spmdguard.collective`: `docs/concepts.md`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..source.unparsing import unparse
from ..traces.nodes import Op, Region
from .registry import rule
from .support_decorators import decorator_fact
from .support_trees import Step, finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis, Root

RULE = rule(code="SPG207", name="deferred-collective", severity="error", status="stable", page=__doc__)
HELP = "move the collective out of the rank-local part, or declare the function with `@collective`"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations in deferred regions, and in functions that are declared rank-local but never called."""
    for root in analysis.roots:
        if not root.contents.ops:
            continue
        for step in root.steps:
            if not isinstance(step.node, Op) or step.node.kind in ("point-to-point", "request"):
                continue
            region = next(
                (n for n, _ in reversed(step.path) if isinstance(n, Region) and n.kind == "deferred"), None
            )
            if region is not None:
                yield _finding(step, step.node, region.text)
        if declared := _declared(analysis, root):
            for step in root.steps:
                if isinstance(step.node, Op) and step.node.kind not in ("point-to-point", "request"):
                    yield _finding(step, step.node, declared)


def _finding(step: Step, op: Op, declared: str) -> Finding:
    message = (
        f"`{op.text}` is a collective, and `{declared}` declares it rank-local: a rank that fails skips it"
    )
    return finding_at(RULE, op, message, HELP, certainty="definite", calls=step.calls)


def _declared(analysis: Analysis, root: Root) -> str:
    """The decorator that declares a root rank-local, or ""."""
    if root.function is None:
        return ""
    return next(_rank_local_decorators(root), "")


def _rank_local_decorators(root: Root) -> Iterator[str]:
    assert root.function is not None
    for decorator in getattr(root.function.node, "decorator_list", ()):
        fact = decorator_fact(root.module, decorator)
        if fact is not None and fact.event == "defer":
            yield f"@{unparse(decorator)}"
