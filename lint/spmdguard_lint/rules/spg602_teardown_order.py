"""
# teardown-order (SPG602)

## What it does
Finds a collective, a barrier or the making of a group after the default process group was destroyed, and a collective
on a group after that group was destroyed. Also the destruction of the default group by a function that
`spmdguard.run` runs: its ranks tell one another afterwards who has failed, and destroy the group then. So it does a
`TCPStore` in the process of one rank, which ends without waiting for the others that still use it.

## Why is this bad
The call raises on every rank that gets there ("default process group has not been initialized"), or, where
only some ranks have destroyed the group, the others wait for them until the timeout. With its host a store is gone: the
next use of it ends with "connection reset by peer".

## Example
```python
import torch.distributed as dist

def close():
    dist.destroy_process_group()
    dist.barrier()
```

## Use instead
```python
import torch.distributed as dist

def close():
    dist.barrier()
    dist.destroy_process_group()
```

## Known limits
`destroy_process_group()` without a group ends every group. The end of one group alone (`destroy_process_group(group)`)
is followed where the code shows the making of the group, or gets it as a parameter; an item of a list of groups is not.
Where the code asks `is_initialized()` after the destruction, it is taken to know what it does. A store is seen in
programs without a process group, where a variable holds it, and its host is known by `is_master`; keys are compared as
far as they are written down or computed from the rank.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#shutdown
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Event, Fallible, Loop, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where
from ..values.value import Place, Value
from .support_events import counts, finding, is_default_group, reading
from .support_hosts import left_behind

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG602", name="teardown-order", severity="error", status="stable", page=__doc__)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report operations of the default group that follow its destruction."""
    for root in (*reading(analysis), *analysis.unseen_roots):
        if "destroy_process_group" in root.contents.ops:
            walk = _AfterDestroy()
            walk.run(root.tree, _State())
            yield from walk.found.values()
    for left in left_behind(analysis):
        last = left.last or left.made
        yield finding(
            RULE,
            left.use,
            f"`{left.use.text}` may come when the rank that hosts the store has ended: it does not wait for the others",
            "let the others set a key when they are done, and let the host wait for all of these keys before it ends",
            steps=[(left.made.place, "the store is made"), (last.place, "the host's last use of it")],
        )


class _State(NamedTuple):
    """What a path has destroyed: the default group ("" while it lives or code asks whether), and other groups."""

    default: Op | str = ""
    groups: frozenset[tuple[Value, Op]] = frozenset()


class _AfterDestroy(Walk):
    """Its state says what has been destroyed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        assert isinstance(state, _State)
        if isinstance(node, Event) and node.name == "is-initialized":
            return state._replace(default="")
        if isinstance(node, Event) and node.name == "run-agrees" and isinstance(state.default, Op):
            self._report_early(state.default, node)
        if not isinstance(node, Op) or not counts(node):
            return state
        if node.name == "destroy_process_group":
            if is_default_group(node):
                return _State(node)
            if node.group is None or not _is_one(node.group):
                return state
            return state._replace(groups=state.groups | {(node.group, node)})
        if node.name != "init_process_group" and isinstance(state.default, Op):
            self._report(node, state.default, where)
        for group, destroyed in state.groups:
            if node.group is not None and node.group.key == group.key:
                self._report(node, destroyed, where)
        return _State("", frozenset(one for one in state.groups if not _made_at(one[0], node.place)))

    def back(self, node: Loop, state: Hashable, where: Where | None) -> Hashable:
        """In another round, what was made in this one is another group."""
        assert isinstance(state, _State)
        rows = range(node.place.row, node.place.end_row + 1)
        return state._replace(groups=frozenset(one for one in state.groups if _before(one[0], rows, node)))

    def _report_early(self, destroyed: Op, run: Event) -> None:
        self.found[destroyed] = finding(
            RULE,
            destroyed,
            f"`{destroyed.text}` runs before `{run.text}` lets its ranks tell one another who has failed",
            "leave it to `run`, which destroys the process group behind that",
            certainty="likely",
            steps=[(run.place, f"`{run.text}` agrees on errors when its function has ended")],
        )

    def _report(self, node: Op, destroyed: Op, where: Where | None) -> None:
        if node in self.found:
            return
        whole = is_default_group(destroyed)
        after = f"`{node.text}` comes after `{destroyed.text}`"
        message = after if whole else f"{after}, which ends its group"
        told = "no rank can communicate any more" if whole else "no rank can use it any more"
        self.found[node] = finding(
            RULE,
            node,
            message,
            f"make it before the process group is destroyed: {told}",
            certainty="definite" if node.certainty == destroyed.certainty == "definite" else "likely",
            steps=[(destroyed.place, f"`{destroyed.text}` ends the process group")],
            where=where,
        )


def _is_one(group: Value) -> bool:
    """Whether a value is one group, known by where it was made, or a parameter."""
    return _origin(group) is not None or _is_parameter(group)


def _is_parameter(group: Value) -> bool:
    label = group.data[0] if group.tag == "sym" else None
    return isinstance(label, tuple) and label[:1] == ("param",)


def _origin(group: Value) -> Place | None:
    """Where a group was made."""
    data = group.data[1] if group.tag == "extobj" else ()
    return next((part for part in data if isinstance(part, Place)), None) if isinstance(data, tuple) else None


def _made_at(group: Value, place: Place) -> bool:
    return _origin(group) == place


def _before(group: Value, rows: range, loop: Loop) -> bool:
    """Whether a group was there before a loop began."""
    origin = _origin(group)
    return origin is None or origin.filename != loop.place.filename or origin.row not in rows
