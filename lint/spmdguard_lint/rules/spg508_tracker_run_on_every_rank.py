"""
# tracker-run-on-every-rank (SPG508)

## What it does
Finds runs of an experiment tracker (`wandb.init`, `mlflow.start_run`, `SummaryWriter` and others) that every rank of a
job opens.

## Why is this bad
A job of eight ranks leaves eight runs in the dashboard, seven of them next to empty, or eight processes write into one
folder and their curves are mixed up. Each start asks a server, and the one that fails takes down its rank alone.

## Example
```python
import torch.distributed as dist
import wandb


def main(config):
    dist.init_process_group("nccl")
    wandb.init(project="pretraining", config=config)
    dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist
import wandb


def main(config):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        wandb.init(project="pretraining", config=config)
    dist.destroy_process_group()
```

and log under the same test, or choose by rank: `mode="online" if rank == 0 else "disabled"`.

## Known limits
Runs that an argument tells apart by rank are meant, and so are those of a `group` without a name, and W&B's shared
mode. Where only a trainer of a framework communicates, which often runs on one device, the finding is of certainty
`possible`. A guard is also known by the names in its condition.

## Fix safety
No fix.

## References
- https://docs.wandb.ai/guides/track/log/distributed-training
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..facts import lookup as facts
from ..traces.files import LOCAL, RANKS, WORLD, parts_of
from ..traces.nodes import Branch, Event, Fallible, Op, Region
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.evaluate import rank_dependent
from .support_events import finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Certainty, Finding
    from ..values.value import Value

RULE = rule(
    code="SPG508", name="tracker-run-on-every-rank", severity="warning", status="stable", page=__doc__
)
HELP = "open it on one rank, or choose by rank what it does (`mode`)"
_GUARDS = ("main", "master", "rank", "zero", "primary", "leader", "chief", "should", "writer", "save")
_TRAINERS = ("Trainer.", "Engine.")
_OFF = frozenset({"disabled", "shared"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report tracker runs that all ranks open."""
    for root in reading(analysis):
        contents = root.contents
        if "tracker-start" not in contents.events or not (contents.ops or "init" in contents.events):
            continue
        if b"WANDB_MODE" in root.module.source.content or b"WANDB_DISABLED" in root.module.source.content:
            continue
        yield from _opened_by_all(root)


def _opened_by_all(root: Root) -> Iterator[Finding]:
    openings: dict[Event, tuple[set[int], Where | None]] = {}
    for rank in RANKS:
        _Openings(rank, openings).run(root.tree, "")
    own = {name for name in root.contents.ops if not name.startswith(_TRAINERS)} - {"destroy_process_group"}
    certainty: Certainty = "likely" if own else "possible"
    for node, (ranks, where) in openings.items():
        if len(ranks) == WORLD and not _told_apart(node) and not _guarded(where):
            message = f"every rank opens a run of its own in `{node.text}`"
            yield finding(RULE, node, message, HELP, certainty=certainty, where=where)


class _Openings(Walk):
    """Collects which ranks come to each opening of a run."""

    def __init__(self, rank: int, found: dict[Event, tuple[set[int], Where | None]]) -> None:
        super().__init__(rank=rank, world=WORLD, local=LOCAL)
        self.me = rank
        self.found = found

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event) and node.name == "tracker-start" and not _main_only(node):
            self.found.setdefault(node, (set(), where))[0].add(self.me)
        return state


def _main_only(node: Event) -> bool:
    """Whether the library itself opens the run on one rank."""
    fact = facts.function(node.call)
    return fact is not None and fact.main_only != ""


def _told_apart(node: Event) -> bool:
    """Whether the arguments let the ranks' runs differ, belong together, or do nothing."""
    given = [*node.args, *node.keywords.values(), *([node.receiver] if node.receiver is not None else [])]
    if any(rank_dependent(value) or any(taint.kind in _OWN for taint in value.taint) for value in given):
        return True
    if any(part.tag == "const" and part.data[0] in _OFF for value in given for part in parts_of(value)):
        return True
    return "group" in node.keywords and not _is_given(node.keywords, "name", "id")


_RANKS = frozenset({"rank", "group-rank"})
_OWN = _RANKS | {"environment"}


def _is_given(keywords: dict[str, Value], *names: str) -> bool:
    return any(name in keywords for name in names)


def _guarded(where: Where | None) -> bool:
    """Whether a test around the opening asks for the rank, or says so by its names, or the opening runs elsewhere."""
    for w in around(where):
        if isinstance(w.node, Branch):
            condition = w.node.condition
            if any(taint.kind in _RANKS for taint in condition.taint):
                return True
            texts = (w.node.text, *(str(part.data[0]) for part in parts_of(condition) if part.data))
            if any(word in text.lower() for text in texts for word in _GUARDS):
                return True
        if isinstance(w.node, Region) and w.node.kind == "thread":
            return True
    return False
