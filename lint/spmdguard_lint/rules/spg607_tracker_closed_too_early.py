"""
# tracker-closed-too-early (SPG607)

## What it does
Finds runs of an experiment tracker that are closed before the kept error is raised, MLflow runs that no
path of an error marks as failed, and runs of W&B, SwanLab and MLflow that an error on its way out closes as finished:
`run.finish()` in `finally`, or in an `except` clause that raises again.

## Why is this bad
The tracker then shows the run as finished although it failed: it is counted, compared and deployed. MLflow
ends a run that is still open at interpreter exit with the status FINISHED, also when the interpreter exits
because of an exception. W&B would notice the exception at the end of the program, but not for a run that is closed by
then.

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
Other trackers than MLflow notice an uncaught exception themselves; a run of theirs that is left open is no finding.
What a run is closed as is told by constants (`exit_code=0`, `status="FINISHED"`) or by nothing at all. Where one other
call says how the run went, or a test of it stands around, the rest of that code is left alone. Callbacks of an
`ExitStack` are not looked at.

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

from ..traces.nodes import Branch, Event, Fallible, Jump, Node, Op, Region, every_node
from ..traces.sequence import Walk
from ..traces.where import Where, calls_of, in_handler
from ..values.value import is_const, parts_of
from .support_events import finding, reading
from .support_outcomes import asks_outcome

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

_TOLD = {
    "mlflow": HELP_STATUS,
    "wandb": "use `with wandb.init() as run:`, or `run.finish(exit_code=1)` on the way of an error",
    "swanlab": "call `swanlab.finish(state='crashed')` on the way of an error, and `swanlab.finish()` behind it",
}


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report runs that are closed, or left to be closed, as finished."""
    for root in reading(analysis):
        events = root.contents.events
        if "raise-if-deferred" in events and events & {"tracker-start", "tracker-end"}:
            closing = _Closings()
            closing.run(root.tree, "")
            yield from closing.found.values()
        if "tracker-start" in events and root.contents.ops and "tracker-start" not in root.contents.regions:
            starts = _Starts(analysis)
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
    """Collects runs that are opened outside a with statement, and how an error on its way out closes them."""

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self.analysis = analysis
        self.starts: dict[Node, Where | None] = {}
        self.closed: dict[Node, tuple[Where, Where | None]] = {}
        self.started: set[str] = set()
        self.marked = False

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Event) and node.name == "tracker-start":
            self.started.add(node.call.partition(".")[0])
            if node.call == "mlflow.start_run":
                self.starts.setdefault(node, where)
        elif isinstance(node, Event) and node.name == "tracker-end":
            clause = in_handler(where)
            passed = clause is not None and _goes_on(clause)
            if not _as_finished(node) or (clause is not None and not passed):
                self.marked = True
            elif clause is None:
                self.marked = self.marked or bool(node.args or node.keywords.keys() - _SILENT)
            elif not node.call.startswith("mlflow.Mlflow"):
                self.marked = self.marked or asks_outcome(self.analysis, node, where, clause)
                self.closed.setdefault(node, (clause, where))
        return state

    def unmarked(self) -> Iterable[Finding]:
        """The runs that end as finished after an error: MLflow's at its exit, others where they are closed."""
        told = self.started & set(_TOLD)
        if self.marked:
            return
        for node, (clause, where) in self.closed.items() if told else ():
            assert isinstance(node, Event)
            words = "`finally`" if clause.handler is None else f"`{clause.handler.text}`"
            message = f"`{node.text}` in {words} ends the run as finished, also after an exception"
            tracker = next((name for name in _TOLD if node.call.startswith(name)), min(told))
            yield finding(RULE, node, message, _TOLD[tracker], where=where)
        for node, started in {} if self.closed else self.starts.items():
            assert isinstance(node, Event)
            message = f"`{node.text}` is ended as finished by MLflow when an exception ends the program"
            yield finding(RULE, node, message, HELP_STATUS, where=started)


def _goes_on(clause: Where) -> bool:
    """Whether the error goes on behind a clause: that of a ``finally``, or of one that catches all and raises again."""
    if clause.handler is None:
        return True
    names = clause.handler.names
    raises = any(isinstance(node, Jump) and node.kind == "raise" for node in every_node(clause.handler.body))
    return raises and not {*names} - {"Exception", "BaseException"}
