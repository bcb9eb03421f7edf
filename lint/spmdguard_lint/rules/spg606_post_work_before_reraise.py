"""
# post-work-before-reraise (SPG606)

## What it does
Finds work of the main rank that is done after the process group is destroyed and before the error that was
kept for later is raised.

## Why is this bad
The run has failed already; the error is only not out yet. Evaluation, sampling and uploads of a failed run
take their time, publish results nobody should see, and may raise an error of their own in place of the one
that was kept.

## Example
```python
import torch.distributed as dist
from spmdguard import raise_if_deferred_error

def publish(path):
    with open(path, "w") as out:
        out.write("done")

def main():
    lead = dist.get_rank() == 0
    dist.barrier()
    dist.destroy_process_group()
    if lead:
        publish("result.txt")
        raise_if_deferred_error()
```

## Use instead
```python
import torch.distributed as dist
from spmdguard import raise_if_deferred_error

def publish(path):
    with open(path, "w") as out:
        out.write("done")

def main():
    lead = dist.get_rank() == 0
    dist.barrier()
    dist.destroy_process_group()
    if lead:
        raise_if_deferred_error()
        publish("result.txt")
```

## Known limits
Work is a call of a function of the project that does something that may fail, or an operation on files, the
network or a tracker.

## Fix safety
No fix.

## References
- `spmdguard.run` keeps this order
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.contents import contents_of
from ..traces.nodes import Call, Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from .support_events import finding, is_default_group, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG606", name="post-work-before-reraise", severity="warning", status="stable", page=__doc__)
_ALIVE, _DEAD = "alive", "dead"
_QUIET = frozenset({"tracker-end"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report work between the destruction of the group and the raise of the kept error."""
    for root in reading(analysis):
        contents = root.contents
        if "raise-if-deferred" in contents.events and "destroy_process_group" in contents.ops:
            walk = _Endings()
            walk.run(root.tree, _ALIVE)
            yield from walk.found.values()


class _Endings(Walk):
    """State: the group lives, or is destroyed, or the first work done since."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}
        self.closing: set[object] = set()

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op):
            self.closing.add(node.place)
            if node.name == "destroy_process_group" and is_default_group(node):
                return _DEAD
            return _ALIVE if node.name == "init_process_group" else state
        if isinstance(node, Event):
            if node.name == "raise-if-deferred":
                if isinstance(state, Node):
                    self._report(state, node)
                return _ALIVE
            if node.name in _QUIET:
                self.closing.add(node.place)
        elif node.io and state == _DEAD and node.place not in self.closing:
            return self._work(node, where)
        return state

    def enter(self, node: Call, state: Hashable, where: Where | None) -> Hashable:
        """A call whose body raises the kept error itself is the end, not work."""
        if state != _DEAD or node.mode != "call" or node.name.rpartition(".")[2].startswith("__"):
            return state
        contents = contents_of(node.body)
        if "raise-if-deferred" in contents.events or not (contents.io or contents.fallible > 1):
            return state
        return self._work(node, where)

    def _work(self, node: Node, where: Where | None) -> Node:
        self.ways.setdefault(node, where)
        return node

    def _report(self, work: Node, raising: Event) -> None:
        if work in self.found:
            return
        text = getattr(work, "text", "")
        self.found[work] = finding(
            RULE,
            work,
            f"`{text}` is done before `{raising.text}`, though the run may have failed already",
            "raise the kept error first, directly after the process group is destroyed",
            steps=[(raising.place, f"`{raising.text}` comes only here")],
            where=self.ways.get(work),
        )
