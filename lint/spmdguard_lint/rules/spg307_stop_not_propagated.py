"""
# stop-not-propagated (SPG307)

## What it does
Finds an agreed stop (`sync_should_stop`, `check_trigger`) that ends an inner loop only, while the loop around
it starts another round.

## Why is this bad
All ranks have agreed to stop because one of them keeps an error. Leaving the inner loop only ends this epoch:
the next one trains on with the error still stored, stops after its first step, and so on to the last epoch.
The error comes out hours later, behind checkpoints and metrics of epochs that were never trained.

## Example
```python
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, sync_should_stop

def train(epochs, batches, step, log):
    for epoch in range(epochs):
        for batch in batches:
            grad = step(batch)
            dist.all_reduce(grad)
            with deferring("log"):
                log(epoch)
            if sync_should_stop(has_deferred_error()):
                break
        dist.barrier()
```

## Use instead
```python
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, sync_should_stop

def train(epochs, batches, step, log):
    for epoch in range(epochs):
        stop = False
        for batch in batches:
            grad = step(batch)
            dist.all_reduce(grad)
            with deferring("log"):
                log(epoch)
            stop = sync_should_stop(has_deferred_error())
            if stop:
                break
        if stop:
            break
        dist.barrier()
```

A `return`, `if stop_reason(): break` in the outer loop, or `else: continue` and `break` do as well.

## Known limits
A verdict that is kept in a list, a file or another object's method is taken for propagated as soon as the
outer loop tests something that is computed from it.

## Fix safety
Unsafe: a program that means to go on after the inner loop is stopped. The fix puts `if stop_reason(): break` behind the
inner loop, or the call that holds it; it is local, because after an agreed stop all ranks have the same reason. No
fix where the agreement is not spmdguard's.

## References
- `spmdguard.sync_should_stop`
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from spmdguard_lint.rules.registry import rule

from ..traces.files import parts_of
from ..traces.nodes import Branch, Event, Fallible, Jump, Loop, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where, around, calls_of
from ..values.evaluate import Valuation, truth
from ..values.value import Place
from .support_events import comes_from, finding, is_loop, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(
    code="SPG307", name="stop-not-propagated", severity="warning", status="stable", page=__doc__, fix="unsafe"
)


class Stopped(NamedTuple):
    """The group has agreed to stop: where it is asked, in which loop, by which jump that loop was left."""

    asked: Branch
    loop: Node
    left: Jump | None = None


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report stops that only leave the inner one of two loops."""
    for root in reading(analysis):
        if "sync-stop" in root.contents.events and root.contents.num_loops > 1:
            walk = _Stops()
            walk.run(root.tree, "")
            yield from walk.found.values()


class _Stops(Walk):
    """State: the stop that was agreed and not yet asked for again, or ""."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[Place] = set()
        self.ways: dict[Node, Where | None] = {}
        self.found: dict[Node, Finding] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event) and node.name in ("sync-stop", "stop-reason"):
            self.asked.add(node.place)
            return "" if node.name == "sync-stop" else state
        return state

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        if not comes_from(node.condition, self.asked):
            return state
        if isinstance(state, Stopped):
            return state if node is state.asked else ""
        loop = next((w.node for w in around(where) if is_loop(w)), None)
        if loop is None or not self._means_stop(node, holds):
            return state
        self.ways[node] = where
        return Stopped(node, loop)

    def _means_stop(self, node: Branch, holds: bool) -> bool:
        """Whether this arm is taken because the group has agreed to stop."""
        asked = {
            part.key
            for part in parts_of(node.condition)
            if part.tag == "sym" and comes_from(part, self.asked)
        }
        for verdict in (True, False):
            known = truth(node.condition, Valuation(0, 2, atoms=dict.fromkeys(asked, verdict)))
            if known is not None:
                return (known is holds) is verdict
        return holds

    def jump(self, node: Jump, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(state, Stopped) and state.left is None and node.kind in ("break", "return", "end"):
            return state._replace(left=node)
        return state

    def back(self, node: Loop, state: Hashable, where: Where | None) -> Hashable:
        if (
            isinstance(state, Stopped)
            and state.left is not None
            and node is not state.loop
            and any(around_it.node is node for around_it in around(self.ways.get(state.asked)))
        ):
            self._report(state, node)
        return ""

    def _report(self, stop: Stopped, outer: Loop) -> None:
        assert stop.left is not None
        if stop.left in self.found:
            return
        self.found[stop.left] = finding(
            RULE,
            stop.left,
            f"the stop agreed in `{stop.asked.text}` ends the inner loop only; `{outer.text}` goes on",
            "carry the verdict to the outer loop, or end it with `if stop_reason(): break`",
            steps=[
                (stop.asked.place, f"`{stop.asked.text}` is true on all ranks once one keeps an error"),
                (outer.place, f"`{outer.text}` starts its next round all the same"),
            ],
            where=self.ways.get(stop.asked),
            marks=[("outer", outer), *(("call", call) for call in calls_of(self.ways.get(stop.asked)))],
        )
