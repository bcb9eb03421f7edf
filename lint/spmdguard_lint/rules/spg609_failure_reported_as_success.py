"""
# failure-reported-as-success (SPG609)

## What it does
Finds exits with status 0 in signal handlers and in `except` clauses of code that communicates, programs that keep
errors with spmdguard until the group is destroyed and then raise none of them, `except` clauses that only log what
`raise_if_deferred_error` has raised, and `except` clauses inside of `deferring`, `@rank_local` or `try_or_defer`
that swallow the error of a file before it can be kept. So it does clauses that only log what goes wrong while each
rank writes its own file, where one rank then reads the files of all; kept errors that some ranks alone raise;
decorators that swallow what a function with collectives raises (`@logger.catch` of loguru); work that all ranks end
because one could not write its files, in a program that raises nothing; calls that save a checkpoint, answer whether
they could, and whose answer nobody looks at; and flags that say whether this rank has caught an error, joined so that
one rank which is well outweighs those that have failed (`ok` with `MAX` or `any`, `failed` with `MIN` or `all`).

## Why is this bad
The launcher watches the exit status of each rank: one that fails makes it stop the others at once. A rank
that leaves with status 0 in the middle of a job has ended well as far as the launcher can see. It does
nothing, and the other ranks wait in their next collective for a rank that is gone.

## Example
```python
import sys

import torch
import torch.distributed as dist

def load(path, optimizer):
    try:
        optimizer.load_state_dict(torch.load(path))
    except KeyError:
        print("no optimizer state")
        sys.exit()
    dist.barrier()
```

## Use instead
Leave with the error, or agree on it first:

```python
import torch
import torch.distributed as dist

def load(path, optimizer):
    problem = None
    try:
        optimizer.load_state_dict(torch.load(path))
    except Exception as error:
        problem = str(error)
    problems = [None] * dist.get_world_size()
    dist.all_gather_object(problems, problem)
    if any(problems):
        raise RuntimeError(problems)
```

In a signal handler only set a flag; the loop agrees on it at the end of the step. After
`destroy_process_group()` call `spmdguard.raise_if_deferred_error()`, or let `spmdguard.run` do both.

## Known limits
The status is recognised where it is a constant. Handlers for `KeyboardInterrupt` are left alone. A clause inside of
a deferral is reported where it catches a broad class, does no more than log, and all files of the deferral are
touched in its `try`: one that answers a special case (`FileNotFoundError`), sets a flag or tries again is right. A
function answers where a broad clause only logs and returns a constant, and the function returns another one elsewhere.
Errors that ranks tell one another count where all clauses of the program are broad and around writes. Files that one
rank puts together are told by their names, which must hold the rank; a `raise` behind the reading is taken for a check
of what was read. Flags that are joined are known where the value tells them (`ok = False` in the clause, not
`flag.zero_()`), not where the `try` body itself returns the answer, and those of a success where the body writes a file
or communicates: of what is read, one may be enough.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/elastic/errors.html
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Event, Fallible, Jump, Node, Op, Region, Try, every_node
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.value import place_of
from .support_events import counts, finding, reading
from .support_partial import partial_results
from .support_swallowed import logging_only, swallowing
from .support_unheard import dropped_answers, raised_on_some, swallowing_decorators, told_and_dropped
from .support_verdicts import hidden_failures

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.functions import FunctionInfo
    from ..values.value import Value

RULE = rule(
    code="SPG609", name="failure-reported-as-success", severity="warning", status="stable", page=__doc__
)
HELP_HANDLER = "only set a flag in the handler, and let the ranks agree on it at the end of the step"
HELP_CLAUSE = "let the exception go on, or exit with a status other than 0"
HELP_KEPT = "call `spmdguard.raise_if_deferred_error()` after the group is destroyed"
HELP_SWALLOWED = "leave the error to the deferral, or raise it again after logging"
HELP_LOGGED = "raise it again after logging"
HELP_DECORATOR = "let the exception go on after it is logged (`reraise=True`)"
HELP_SOME = "raise on every rank: each has kept its own errors"
HELP_TOLD = "raise, or exit with a status other than 0, after the group is destroyed"
HELP_ANSWER = "look at the answer, agree on it with the other ranks, and raise"
HELP_PARTIAL = "set a flag in the clause, all_reduce it, and raise on every rank before the files are read"
_ASKS = re.compile(rb"raise_if_deferred_error|(?<!has_)deferred_error\(|OtherRanksFailed|@(?:\w+\.)?run\b")
_MEANT = frozenset({"KeyboardInterrupt", "SystemExit", "StopIteration"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report exits with status 0 where something has gone wrong."""
    communicating = {
        root.module.filename for root in analysis.roots if root.contents.ops - {"destroy_process_group"}
    }
    for function in signal_handlers(analysis):
        if function.module.filename in communicating:
            yield from _leaving_handler(function)
    yield from _kept_for_ever(analysis)
    for region, handler, fault in swallowing(analysis):
        message = f"`{handler.text}` swallows the error of `{fault.text}`: `{region.text}` keeps nothing"
        yield finding(RULE, Node(handler.place), message, HELP_SWALLOWED, steps=[(region.place, "kept here")])
    for handler in logging_only(analysis):
        message = f"`{handler.text}` swallows the kept error: the program ends as a success"
        yield finding(RULE, Node(handler.place), message, HELP_LOGGED)
    yield from _dropped(analysis)
    for part in partial_results(analysis):
        message = (
            f"`{part.handler.text}` only logs that a rank has failed; "
            f"`{part.read.node.text}` takes what it has written for all of it"
        )
        steps = [
            (part.written.node.place, f"`{part.written.node.text}` writes this rank's part"),
            (part.read.node.place, f"`{part.read.node.text}` reads the parts of all ranks"),
        ]
        yield finding(RULE, Node(part.handler.place), message, HELP_PARTIAL, steps=steps)
    for root in reading(analysis):
        if "exit" in root.contents.jumps and root.contents.ops:
            exits = _Exits()
            exits.run(root.tree, "")
            yield from exits.found.values()


def _dropped(analysis: Analysis) -> Iterator[Finding]:
    """Failures of which the end of the program says nothing, on some ranks or on all."""
    for place, text in swallowing_decorators(analysis):
        message = f"`@{text}` swallows what the function raises: a rank that failed ends as a success"
        yield finding(RULE, Node(place), message, HELP_DECORATOR)
    for raising, kept in raised_on_some(analysis):
        message = f"`{raising.text}` runs on some ranks only: an error that `{kept.text}` has kept elsewhere is dropped"
        yield finding(
            RULE, raising, message, HELP_SOME, steps=[(kept.place, "kept here on other ranks, too")]
        )
    for told in told_and_dropped(analysis):
        message = (
            f"`{told.jump.text}` ends the work where `{told.op.text}` tells of an error, and nothing raises it: "
            "the program ends as a success"
        )
        steps = [(told.handler.place, f"`{told.handler.text}` has caught it"), (told.op.place, "told here")]
        yield finding(RULE, told.jump, message, HELP_TOLD, steps=steps)
    for call, handler, written in dropped_answers(analysis):
        message = f"nobody looks at the answer of `{call.text}`, which tells that `{written.text}` has failed"
        step = (handler.place, f"`{handler.text}` only logs the error, and answers")
        yield finding(RULE, call, message, HELP_ANSWER, steps=[step])
    for join, handler, operator, says, right in hidden_failures(analysis):
        message = (
            f"`{join.text}` joins flags that say {says} with `{operator}`: one rank that is well hides the failure of "
            "the others"
        )
        step = (handler.place, f"`{handler.text}` decides the flag of this rank")
        yield finding(RULE, join, message, f"join them with `{right}`", steps=[step])


def _kept_for_ever(analysis: Analysis) -> Iterator[Finding]:
    """The destruction of the group in a program that keeps errors until then, and never asks for them again."""
    asks: bool | None = None  # the text of all files is searched only where it decides
    for root in reading(analysis):
        if (
            "destroy_process_group" not in root.contents.ops
            or {"run", "raise-if-deferred"} & root.contents.events
        ):
            continue
        nodes = list(every_node(root.tree))
        kept = [node for node in nodes if isinstance(node, Region) and node.kind == "deferred"]
        if not kept:
            continue
        for node in nodes:
            if isinstance(node, Op) and node.name == "destroy_process_group":
                if asks is None:
                    asks = any(module.asked.matches(_ASKS) for module in analysis.project.all_modules)
                if asks:
                    return
                message = f"an error that `{kept[0].text}` has kept is never raised after `{node.text}`"
                yield finding(RULE, node, message, HELP_KEPT, marks=(("kept", kept[0]),))


def signal_handlers(analysis: Analysis) -> list[FunctionInfo]:
    """The functions that are installed as signal handlers."""
    found: dict[int, FunctionInfo] = {}
    for root in analysis.roots:
        if "signal-handler" not in root.contents.events:
            continue
        for node in every_node(root.tree):
            if isinstance(node, Event) and node.name == "signal-handler":
                found.update((id(v.data[0]), v.data[0]) for v in node.args if v.tag == "func")
    return list(found.values())


def _leaving_handler(function: FunctionInfo) -> Iterator[Finding]:
    for call in walk(function.node):
        if isinstance(call, ast.Call) and _exits_well(call):
            text = unparse(call)
            place = place_of(function.module.filename, call)
            message = f"`{text}` in a signal handler tells the launcher that this rank has ended well"
            yield finding(RULE, Node(place), message, HELP_HANDLER)


def _exits_well(call: ast.Call) -> bool:
    """``sys.exit()``, ``exit(0)``, ``os._exit(0)`` or ``SystemExit(0)``."""
    name = called_name(call)
    if name not in ("exit", "_exit", "quit", "SystemExit"):
        return False
    return not call.args or (isinstance(call.args[0], ast.Constant) and call.args[0].value in (None, 0))


def is_success(status: Value | None) -> bool:
    """Whether an exit status means success: none given, None or 0."""
    return status is None or (status.tag == "const" and status.data[0] in (None, 0))


class _Exits(Walk):
    """State: whether the ranks have met, or meet in what follows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        return "met" if isinstance(node, Op) and counts(node) else state

    def jump(self, node: Jump, state: Hashable, where: Where | None) -> Hashable:
        if node.kind == "exit" and is_success(node.value) and node not in self.found:
            clause = next((w for w in around(where) if w.part in ("handler", "unwinding")), None)
            if clause is not None and clause.part == "unwinding":
                message = f"`{node.text}` in `finally` ends a rank with status 0, whatever has failed"
                self.found[node] = finding(RULE, node, message, HELP_CLAUSE, where=where)
            elif clause is not None and clause.handler is not None and self._matters(clause, state):
                message = f"`{node.text}` in `{clause.handler.text}` ends a rank that failed with status 0"
                step = (clause.handler.place, f"`{clause.handler.text}` has caught an error of this rank")
                self.found[node] = finding(RULE, node, message, HELP_CLAUSE, steps=[step], where=where)
        return state

    def _matters(self, clause: Where, state: Hashable) -> bool:
        """Whether other ranks may wait: they have met, or it is files or communication that failed."""
        assert clause.handler is not None
        if _MEANT & set(clause.handler.names):
            return False
        if state == "met" or not isinstance(clause.node, Try):
            return True
        body = every_node(clause.node.body)
        return any(inner.io if isinstance(inner, Fallible) else isinstance(inner, Op) for inner in body)
