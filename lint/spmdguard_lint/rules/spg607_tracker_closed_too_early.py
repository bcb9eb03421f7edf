"""
# tracker-closed-too-early (SPG607)

## What it does
Finds runs of an experiment tracker that are closed before the kept error is raised, and MLflow runs that no
path of an error marks as failed.

## Why is this bad
The tracker then shows the run as finished although it failed: it is counted, compared and deployed. MLflow
ends a run that is still open at interpreter exit with the status FINISHED, also when the interpreter exits
because of an exception.

## Example
```python
import mlflow
import torch.distributed as dist

def train(steps, step):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        mlflow.start_run()
    for index in range(steps):
        dist.all_reduce(step(index))
    if dist.get_rank() == 0:
        mlflow.end_run()
    dist.destroy_process_group()
```

## Use instead
Let the run be a context that holds the whole life of the job, the raising of a kept error included:

```python
import contextlib

import mlflow
import torch.distributed as dist

def train(steps, step):
    dist.init_process_group("gloo")
    tracked = mlflow.start_run() if dist.get_rank() == 0 else contextlib.nullcontext()
    with tracked:
        for index in range(steps):
            dist.all_reduce(step(index))
        dist.barrier()
        dist.destroy_process_group()
```

## Known limits
Other trackers than MLflow notice an uncaught exception themselves; of them only the order is judged. What a run
is closed as is told by constants (`exit_code=0`, `status="FINISHED"`) or by nothing at all.

## Fix safety
No fix.

## References
- https://mlflow.org/docs/latest/python_api/mlflow.html#mlflow.start_run
- `spmdguard.run` with a reporter
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.nodes import Branch, Event, Fallible, Node, Op, Region
from ..traces.sequence import Walk
from ..traces.where import Where, calls_of, in_handler
from ..values.value import is_const, parts_of
from .support_events import finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG607", name="tracker-closed-too-early", severity="warning", status="stable", page=__doc__)
HELP = "keep the run open until the kept error has been raised, so that it is closed as failed"
_WELL = frozenset({"finished", "success", "succeeded", "successful", "completed", "complete", "done"})
_SILENT = frozenset({"quiet", "timeout"})
_ASKED = ("spmdguard.has_deferred_error", "spmdguard.deferred_error")
_KNOWS = "knows"
HELP_STATUS = "use `with mlflow.start_run():`, or `mlflow.end_run(status='FAILED')` on the way of an error"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report runs that are closed, or left to be closed, as finished."""
    for root in reading(analysis):
        events = root.contents.events
        if "raise-if-deferred" in events and events & {"tracker-start", "tracker-end"}:
            closing = _Closings()
            closing.run(root.tree, "")
            yield from closing.found.values()
        if "tracker-start" in events and root.contents.ops and "tracker-start" not in root.contents.regions:
            starts = _Starts()
            starts.run(root.tree, "")
            yield from starts.unmarked()


class _Closings(Walk):
    """State: what closed the tracker's run, or "", or that it is known whether there is a kept error."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        labels = (part.data[0] for part in parts_of(node.condition) if part.tag == "sym")
        asks = any(isinstance(label, tuple) and label and label[0] in _ASKED for label in labels)
        return _KNOWS if asks else state

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if not isinstance(node, Event):
            return state
        if state != _KNOWS and node.name == "tracker-end" and _as_finished(node):
            self.ways.setdefault(node, where)
            return node
        if node.name == "tracker-start":
            return ""
        if node.name == "raise-if-deferred" and isinstance(state, (Event, Region)):
            self._report(state, node)
        return state

    def leave(self, node: Region, state: Hashable, where: Where | None) -> Hashable:
        if node.kind != "tracker-start":
            return state
        self.ways.setdefault(node, where)
        return node

    def _report(self, closed: Event | Region, raising: Event) -> None:
        if closed in self.found:
            return
        where = self.ways.get(closed)
        block = next((call for call in calls_of(where) if call.mode == "manager"), None) or closed
        what = "" if isinstance(block, Event) else "the block of "
        steps = [(raising.place, f"`{raising.text}` raises after the run was closed")]
        if block is not closed:
            steps.insert(0, (closed.place, f"`{closed.text}` closes it"))
        self.found[closed] = finding(
            RULE,
            block,
            f"{what}`{block.text}` has closed the run as finished before `{raising.text}`",
            HELP,
            steps=steps,
            where=where,
        )


def _as_finished(node: Event) -> bool:
    """Whether a run is closed as one that has ended well: nothing else is said, or just that."""
    said = [*node.args, *(value for name, value in node.keywords.items() if name not in _SILENT)]
    return all(is_const(value) and _means_success(value.data[0]) for value in said)


def _means_success(status: object) -> bool:
    if isinstance(status, str):
        return status.lower() in _WELL
    return status is None or status is True or (type(status) is int and status == 0)


class _Starts(Walk):
    """Collects MLflow runs that are opened outside a with statement, and how runs are ended."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: dict[Node, Where | None] = {}
        self.closed: dict[Node, Where | None] = {}
        self.marked = False

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event) and node.name == "tracker-start" and node.call == "mlflow.start_run":
            self.starts.setdefault(node, where)
        elif isinstance(node, Event) and node.name == "tracker-end":
            stated = bool(node.args or node.keywords)
            self.marked = self.marked or stated or in_clause(where)
            if not stated and node.call.startswith("mlflow") and not in_clause(where) and in_handler(where):
                self.closed.setdefault(node, where)
        return state

    def unmarked(self) -> Iterable[Finding]:
        """The runs that an error leaves to MLflow's own end."""
        for node, where in {} if self.marked else (self.closed or self.starts).items():
            assert isinstance(node, Event)
            message = f"`{node.text}` is ended as finished by MLflow when an exception ends the program"
            if node in self.closed:
                message = f"`{node.text}` in `finally` ends the run as finished, also after an exception"
            yield finding(RULE, node, message, HELP_STATUS, where=where)


def in_clause(where: Where | None) -> bool:
    """Whether a node stands in an except clause."""
    clause = in_handler(where)
    return clause is not None and clause.part == "handler"
