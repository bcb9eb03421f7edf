"""
# reraise-before-destroy-process-group (SPG601)

## What it does
Finds an error kept by one rank that is raised while the process group still lives and the other ranks have
a barrier, a collective or `destroy_process_group` before them. So it does with files that were written through a
`concurrent.futures` pool, whose errors `future.result()` raises right before the last barrier or the teardown.

## Why is this bad
The rank that has the error leaves there. The others come to the next collective, or to the teardown, and wait
for it until the timeout; the error they then report is a communication error, not the one that was kept.

## Example
```python
import torch.distributed as dist
from spmdguard import raise_if_deferred_error

def finish():
    raise_if_deferred_error()
    dist.barrier()
    dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist
from spmdguard import raise_if_deferred_error

def finish():
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
```

## Known limits
A stored exception is recognised where it was bound by an `except` clause of the code read here; one that
comes out of a queue is not. What a library does after your function returns is not seen.

## Fix safety
Safe where only calls stand between the raise and the destruction: without an error the raise has no effect, wherever
it stands. Unsafe where other statements stand between. No fix where the group is destroyed in another function.

## References
- The order of a run: `docs/concepts.md`
- https://docs.pytorch.org/docs/stable/distributed.html#shutdown
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.contents import raises_kept
from ..traces.joined import joins
from ..traces.nodes import Branch, Event, Fallible, Jump, Node, Op, Region, Tree, every_node
from ..traces.sequence import Walk
from ..traces.where import Where, around, calls_of, in_handler
from ..values.value import Place
from .support import site
from .support_events import cared_for, counts, finding, is_default_group, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(
    code="SPG601",
    name="reraise-before-destroy-process-group",
    severity="error",
    status="stable",
    page=__doc__,
    fix="safe",
)

_ALIVE: Hashable = frozenset()
_DEAD: Hashable = "dead"
_LAST = frozenset({"barrier", "destroy_process_group"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report every raise of a kept error that is followed by something the other ranks wait in."""
    for root in reading(analysis):
        contents = root.contents
        pooled = "thread" in contents.regions and _writes_in_a_pool(root.tree)
        if contents.ops and ("raise-if-deferred" in contents.events or contents.raises_kept or pooled):
            walk = _Raises(pooled=pooled)
            walk.run(root.tree, _ALIVE)
            marks = tuple(("destroy", site(place)) for place in sorted(walk.destroyed))
            yield from (replace(found, marks=marks) for found in walk.found.values())


class _Raises(Walk):
    """State: the raises passed since, with the way there; or that the group is gone."""

    def __init__(self, *, pooled: bool = False) -> None:
        super().__init__()
        self.pooled = pooled
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}
        self.destroyed: set[Place] = set()
        self.told: set[Place] = set()

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event) and node.name == "raise-if-deferred":
            return self._passed(node, state, where)
        if isinstance(node, Fallible) and self.pooled and _asks_a_future(node) and not cared_for(where):
            return self._passed(node, state, where)
        if not isinstance(node, Op) or not counts(node):
            return state
        if node.tells:
            self.told.add(node.place)
        if node.name == "init_process_group":
            return _ALIVE
        if node.name == "destroy_process_group" and is_default_group(node):
            self.destroyed.update((node.place, *(call.place for call in calls_of(where))))
        if isinstance(state, frozenset):
            leaving = any(w.part == "unwinding" for w in around(where))  # this rank raises something itself
            for raised in () if leaving else state:
                if node.name in _LAST or not isinstance(raised, Fallible):
                    self._report(raised, node)
            if node.name == "destroy_process_group" and is_default_group(node):
                return _DEAD
            return _ALIVE
        return state

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        raised = _stored_raise(node.orelse if holds else node.then)
        if raised is not None and in_handler(where) is None:
            return self._passed(raised, state, where)
        if state and state != _DEAD and joins(node, self.told):
            return _ALIVE  # the ranks without an error raise as well
        return state

    def _passed(self, node: Node, state: Hashable, where: Where | None) -> Hashable:
        self.ways.setdefault(node, where)
        return state | {node} if isinstance(state, frozenset) else state

    def _report(self, raised: Node, operation: Op) -> None:
        if raised in self.found:
            return
        text = raised.text if isinstance(raised, (Event, Jump, Fallible)) else ""
        pooled = isinstance(raised, Fallible)
        whose = "what failed in this rank's pool" if pooled else "on the rank that kept an error"
        what = (
            "`destroy_process_group`" if operation.name == "destroy_process_group" else "the next collective"
        )
        self.found[raised] = finding(
            RULE,
            raised,
            f"`{text}` raises {whose}, before `{operation.text}` of all ranks",
            f"raise it after the process group is destroyed: the other ranks wait for this one in {what}",
            certainty="definite" if isinstance(raised, Event) else "likely",
            steps=[(operation.place, f"`{operation.text}` is reached by the ranks without an error")],
            where=self.ways[raised],
            diverging=(f"{text}  # leaves",),
            others=(f"{operation.text}  # waits",),
        )


def _writes_in_a_pool(tree: Tree) -> bool:
    """Whether files are written by jobs that are submitted to a pool."""
    return any(
        isinstance(node, Region)
        and node.kind == "thread"
        and ".submit(" in node.text
        and any(isinstance(job, Fallible) and job.io for job in every_node(node.body))
        for node in every_node(tree)
    )


def _asks_a_future(node: Fallible) -> bool:
    """Whether a call raises what a job in a pool has raised."""
    return ".result(" in node.text and node.text.rpartition(".")[2].startswith("result(")


def _stored_raise(arm: list[Node]) -> Jump | None:
    """The jump that raises an exception kept from an earlier except clause, standing in an arm."""
    for node in arm:
        if isinstance(node, Jump) and raises_kept(node):
            return node
    return None
