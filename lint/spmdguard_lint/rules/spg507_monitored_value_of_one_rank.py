"""
# monitored-value-of-one-rank (SPG507)

## What it does
Finds values that Lightning logs on one rank alone (`self.log(..., rank_zero_only=True)`, or under a test of the rank)
although a callback or a scheduler monitors them; and scores that each rank makes of its own batches, by which an engine
of Ignite, or a Trainer of transformers with an `evaluate` of its own, stops early.

## Why is this bad
`ModelCheckpoint`, `EarlyStopping` and a monitored scheduler look at the value on every rank. The other ranks hold
another value, or none: they save under other names, stop in other epochs, and the ranks wait for one another in
different collectives.

## Example
```python
import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.log("val/loss", self.loss(batch), rank_zero_only=True)


def trainer():
    return pl.Trainer(devices=8, callbacks=[ModelCheckpoint(monitor="val/loss")])
```

## Use instead
```python
import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.log("val/loss", self.loss(batch), sync_dist=True)


def trainer():
    return pl.Trainer(devices=8, callbacks=[ModelCheckpoint(monitor="val/loss")])
```

## Known limits
Names are compared where they are constants, in the file and in those that import it. Monitors in configuration files
are not seen. A value that every rank logs without `sync_dist` is not reported. A score of Ignite counts where a handler
of the program assigns the field of the state that the score function reads, and no collective stands in that handler.
An `evaluate` counts where it loops over a loader, and neither it nor a method of the trainer that it calls gathers,
reduces or calls the library's own evaluation.

## Fix safety
No fix.

## References
- https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.core.LightningModule.html (`log`, `rank_zero_only`)
- Lightning-AI/pytorch-lightning#19045
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import children, walk
from ..traces.nodes import Node
from ..values.value import place_of
from .support_evaluations import own_evaluations
from .support_events import finding
from .support_imports import program_of
from .support_scores import local_stops

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(
    code="SPG507", name="monitored-value-of-one-rank", severity="warning", status="stable", page=__doc__
)
HELP = "log it on every rank with `sync_dist=True`, so that all of them see the same value"
HELP_TRAINER = (
    "reduce the counts over all ranks (`self.accelerator.reduce`) before the metrics are made of them"
)
HELP_SCORE = "all_reduce what it is made of, or use a metric of Ignite, which does so"
_RANK_ZERO = re.compile(
    r"\b(?:is_global_zero|(?:global_|local_)?rank\s*==\s*0|is_main_process|is_world_process_zero)\b"
)
_POSITIONS = {"ModelCheckpoint": 2, "EarlyStopping": 0}
_LOGS = frozenset({"log", "log_dict"})
_ALONE = re.compile(rb"rank_zero|rank\s*==|is_global_zero|is_main_process|is_world_process_zero")
_FORKS = ("_step", "_epoch")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report values of one rank that are monitored on all."""
    monitoring: dict[str, list[tuple[str, Module, ast.expr]]] | None = None
    for module in analysis.project.relevant_modules():
        content = module.source.content
        if b"EarlyStopping" in content and b"ignite" in content:
            yield from _scores(module, analysis)
        if b"EarlyStoppingCallback" in content:
            yield from _evaluations(module, analysis)
        if b".log" not in content or b"ightning" not in content or not _ALONE.search(content):
            continue
        for call, names in _logged_by_one(module):
            monitoring = _monitors(analysis) if monitoring is None else monitoring
            for name, owner, where in monitoring.get(module.filename, ()):
                if any(name in (logged, *(logged + fork for fork in _FORKS)) for logged in names):
                    yield _finding(module, call, name, owner, where)
                    break


def _scores(module: Module, analysis: Analysis) -> Iterator[Finding]:
    """Early stops by what each rank has computed for itself."""
    for stop in local_stops(module, analysis.project):
        message = (
            f"`{unparse(stop.call.func)}` stops by `{stop.key}`, which each rank makes of its own batches"
        )
        made = stop.written
        steps = [(place_of(made.module.filename, made.node), f"`{unparse(made.node)}` is not reduced")]
        yield finding(RULE, Node(place_of(module.filename, stop.call)), message, HELP_SCORE, steps=steps)


def _evaluations(module: Module, analysis: Analysis) -> Iterator[Finding]:
    """Early stops of a Trainer by what its own evaluation makes of each rank's share."""
    for one in own_evaluations(module, analysis.project):
        stop = unparse(one.callback.func)
        message = f"`{stop}` stops by what `{one.method.qualname}` makes of this rank's own batches"
        where = place_of(one.method.module.filename, one.loop.iter)
        steps = [(where, f"`{unparse(one.loop.iter)}` gives each rank a share, and nothing is reduced")]
        yield finding(RULE, Node(place_of(module.filename, one.callback)), message, HELP_TRAINER, steps=steps)


def _logged_by_one(module: Module) -> Iterator[tuple[ast.Call, list[str]]]:
    """The calls that log on one rank alone, with the names that they log."""
    stack: list[tuple[ast.AST, bool]] = [(module.tree, False)]
    while stack:
        node, alone = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            alone = any("rank_zero_only" in unparse(decorator) for decorator in node.decorator_list)
        if isinstance(node, ast.If) and _asks_for_rank_zero(node.test):
            stack.extend((child, True) for child in node.body)
            stack.extend((child, alone) for child in (node.test, *node.orelse))
            continue
        if isinstance(node, ast.Call) and _logs_here(node, alone=alone):
            yield node, list(_logged_names(module, node))
        stack.extend((child, alone) for child in children(node))


def _logs_here(call: ast.Call, *, alone: bool) -> bool:
    """Whether a call logs a value of one rank; ``alone``: only that rank comes here."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGS or _says(call, "sync_dist"):
        return False
    return (alone and _is_module(call.func.value)) or _says(call, "rank_zero_only")


def _asks_for_rank_zero(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) or (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)):
        return False
    return _RANK_ZERO.search(unparse(test)) is not None


def _is_module(receiver: ast.expr) -> bool:
    """Whether a receiver is a LightningModule: ``self``, or the parameter of a callback's hook."""
    return isinstance(receiver, ast.Name) and receiver.id in ("self", "pl_module", "module", "model")


def _says(call: ast.Call, keyword: str) -> bool:
    given = next((k.value for k in call.keywords if k.arg == keyword), None)
    return isinstance(given, ast.Constant) and given.value is True


def _logged_names(module: Module, call: ast.Call) -> Iterator[str]:
    first = (
        call.args[0]
        if call.args
        else next((k.value for k in call.keywords if k.arg in ("name", "dictionary")), None)
    )
    keys = first.keys if isinstance(first, ast.Dict) else [first]
    for key in keys:
        name = _text(module, key)
        if name is not None:
            yield name


def _text(module: Module, node: ast.expr | None) -> str | None:
    """A constant text, written there or under a name of the module."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        for statement in module.tree.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == node.id for t in statement.targets
            ):
                return _text(module, statement.value) if not isinstance(statement.value, ast.Name) else None
    return None


def _monitors(analysis: Analysis) -> dict[str, list[tuple[str, Module, ast.expr]]]:
    """What is monitored in each file's programs: by the file itself, and by those that import it."""
    found: dict[str, list[tuple[str, Module, ast.expr]]] = {}
    for module in analysis.project.relevant_modules():
        if b"monitor" not in module.source.content and b"EarlyStopping" not in module.source.content:
            continue
        names = [(name, module, where) for where, name in _monitored(module)]
        for part in program_of(module, analysis.project) if names else ():
            found.setdefault(part.filename, []).extend(names)
    return found


def _monitored(module: Module) -> Iterator[tuple[ast.expr, str]]:
    for node in walk(module.tree):
        given: ast.expr | None = None
        if isinstance(node, ast.Call):
            given = next((k.value for k in node.keywords if k.arg == "monitor"), None)
            called = called_name(node)
            position = _POSITIONS.get(called)
            if given is None and position is not None and position < len(node.args):
                given = node.args[position]
        elif isinstance(node, ast.Dict):
            keyed = zip(node.keys, node.values, strict=True)
            given = next((v for k, v in keyed if isinstance(k, ast.Constant) and k.value == "monitor"), None)
        name = _text(module, given)
        if given is not None and name is not None:
            yield given, name


def _finding(module: Module, call: ast.Call, name: str, owner: Module, where: ast.expr) -> Finding:
    message = f"`{name}` is logged by one rank alone, and is monitored on every rank"
    steps = [(place_of(owner.filename, where), f"`{name}` is monitored here")]
    return finding(RULE, Node(place_of(module.filename, call)), message, HELP, steps=steps)
