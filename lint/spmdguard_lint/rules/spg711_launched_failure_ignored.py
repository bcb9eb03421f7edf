"""
# launched-failure-ignored (SPG711)

## What it does
Finds programs that start a training (`torchrun`, `accelerate launch`, `deepspeed`, `srun python`) as a child process
and do not act on its exit code: it is never looked at, or only logged.

## Why is this bad
The launcher reports by its exit code that a rank has failed. A program that passes over it ends well itself: the
service, the sweep or the job script around it takes the training for finished, and goes on with weights that are old
or incomplete.

## Example
```python
import logging
import subprocess


def train(script):
    done = subprocess.run(["torchrun", "--nproc-per-node", "8", script])
    if done.returncode != 0:
        logging.error("training ended with %s", done.returncode)
```

## Use instead
```python
import subprocess


def train(script):
    subprocess.run(["torchrun", "--nproc-per-node", "8", script], check=True)
```

## Known limits
The command must be put together in the same file, by lists and texts. A child that is started and never waited for is
not reported, nor one that a loop starts again and again. A code that is handed to any function but a logger's, kept
or given back counts as looked at.

## Fix safety
No fix.

## References
- https://docs.python.org/3/library/subprocess.html#subprocess.run (`check`)
- instructlab/training#216 and #263
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Node
from ..values.value import Place
from .support_events import finding
from .support_launches import LAUNCHER, Function, Launches, functions_of, own_nodes

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(code="SPG711", name="launched-failure-ignored", severity="warning", status="stable", page=__doc__)
HELP = "raise where the code is not 0 (`check=True`), or end this program with the same code"
_STARTS = frozenset({"run", "call", "system"})
_RAISING = frozenset({"check_call", "check_output"})
_CODES = frozenset({"wait", "poll", "call", "system", "communicate"})
_LOGGING = re.compile(
    r"^(?:\w+\.)*(?:log|logger|logging|_log|_logger|LOG|LOGGER|console|warnings|sys\.stderr|sys\.stdout)\."
)
_PRINTS = frozenset({"print", "pprint", "rprint", "warn"})
Scope = Function | ast.Module


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report exit codes of launched trainings on which nothing depends."""
    for module in analysis.project.relevant_modules():
        content = module.source.content
        if not LAUNCHER.search(content) or (b"subprocess" not in content and b"os.system" not in content):
            continue
        launches = Launches(module)
        for scope in functions_of(module):
            if launches.speaks(scope):
                for node, message in (
                    *_unseen(scope, launches),
                    *_logged(scope, launches),
                    *_swallowed(scope, launches),
                ):
                    yield _finding(module, node, message)


def _unseen(scope: Scope, launches: Launches) -> Iterator[tuple[ast.AST, str]]:
    """Children whose end is waited for and never looked at."""
    for statement in own_nodes(scope):
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        if called_name(call) in _STARTS:
            unseen = _starts(call, scope, launches) and not _checks(call)
        else:
            unseen = called_name(call) in ("wait", "communicate") and _ends_unseen(call, scope, launches)
        if unseen and not _repeats(scope, statement):
            yield call, f"nothing looks at the exit code of the training that `{_short(call)}` runs"


def _ends_unseen(call: ast.Call, scope: Scope, launches: Launches) -> bool:
    """Whether a child that is waited for is a launch, and nothing in the function asks for its code."""
    child = call.func.value if isinstance(call.func, ast.Attribute) else None
    if (
        not isinstance(child, ast.Name)
        or not _is_child(scope, child.id, launches)
        or _goes_on(scope, child.id)
    ):
        return False
    dropped = _dropped(scope)
    return not any(
        isinstance(node, ast.Attribute)
        and (node.attr in ("returncode", "poll") or (node.attr == "wait" and id(node) not in dropped))
        and isinstance(node.value, ast.Name)
        and node.value.id == child.id
        for node in own_nodes(scope)
    )


def _dropped(scope: Scope) -> set[int]:
    """What is called by the statements that are nothing but a call."""
    statements = (node for node in own_nodes(scope) if isinstance(node, ast.Expr))
    return {id(node.value.func) for node in statements if isinstance(node.value, ast.Call)}


def _starts(call: ast.Call, scope: Scope, launches: Launches) -> bool:
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "args"), None)
    return given is not None and launches.holds(scope, given) and launches.process(call) != ""


def _checks(call: ast.Call) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "check"), None)
    return given is not None and not (isinstance(given, ast.Constant) and not given.value)


def _is_child(scope: Scope, name: str, launches: Launches) -> bool:
    """Whether a name is that of a process made with a launch command."""
    made = (value for value in _assigned(scope, name) if called_name(value) == "Popen")
    return any(isinstance(value, ast.Call) and _starts(value, scope, launches) for value in made)


def _goes_on(scope: Scope, name: str) -> bool:
    """Whether a name is handed to a function, kept or given back."""
    for node in own_nodes(scope):
        held: list[ast.expr] = []
        if isinstance(node, ast.Call):
            held = [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
            held = [node.value]
        elif isinstance(node, (ast.List, ast.Tuple)):
            held = node.elts
        elif isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name):
            held = [node.value]
        if any(isinstance(value, ast.Name) and value.id == name for value in held):
            return True
    return False


def _repeats(scope: Scope, statement: ast.stmt) -> bool:
    """Whether a statement stands in a ``while`` loop, which may start the training anew."""
    return any(
        isinstance(node, ast.While) and any(inner is statement for inner in walk(node))
        for node in own_nodes(scope)
    )


def _logged(scope: Scope, launches: Launches) -> Iterator[tuple[ast.AST, str]]:
    """Exit codes that are compared, while both answers only log."""
    for statement in own_nodes(scope):
        if not isinstance(statement, ast.If):
            continue
        for name, asked in _asked_codes(scope, statement.test, launches):
            failing = statement.body if _is_failure(statement.test) else statement.orelse
            if failing and _only_logs(failing) and not _used_otherwise(scope, name, asked):
                text = f"a failed training is only logged here: nothing else depends on `{asked}`"
                yield failing[0], text


def _asked_codes(scope: Scope, test: ast.expr, launches: Launches) -> Iterator[tuple[str, str]]:
    """The names that hold an exit code and are tested, with the text of what is tested."""
    for part in walk(test):
        if isinstance(part, ast.Name):
            if any(_gives_code(value) for value in _assigned(scope, part.id)):
                yield part.id, part.id
        elif (
            isinstance(part, ast.Attribute) and part.attr == "returncode" and isinstance(part.value, ast.Name)
        ):
            yield part.value.id, unparse(part)
        elif isinstance(part, ast.Call) and called_name(part) in ("call", "system"):
            if _starts(part, scope, launches):
                yield "", _short(part)
        elif isinstance(part, ast.Call) and called_name(part) == "wait":
            child = part.func.value if isinstance(part.func, ast.Attribute) else None
            if isinstance(child, ast.Name) and _is_child(scope, child.id, launches):
                yield child.id, unparse(part)


def _assigned(scope: Scope, name: str) -> Iterator[ast.expr]:
    """What a name is assigned."""
    for node in own_nodes(scope):
        if isinstance(node, ast.NamedExpr):
            targets: list[ast.expr] = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            targets = [node.optional_vars]
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            yield node.context_expr if isinstance(node, ast.withitem) else node.value


def _gives_code(value: ast.expr) -> bool:
    if isinstance(value, ast.Attribute):
        return value.attr == "returncode"
    return called_name(value) in _CODES - {"communicate"}


def _is_failure(test: ast.expr) -> bool:
    """Whether a test holds where the training failed: ``code != 0``, ``code``, ``done.returncode``."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], (ast.NotEq, ast.IsNot, ast.Gt, ast.Lt))
    return not isinstance(test, ast.UnaryOp)


def _only_logs(body: list[ast.stmt]) -> bool:
    for statement in body:
        if isinstance(statement, ast.Pass) or (isinstance(statement, ast.Return) and statement.value is None):
            continue
        if not isinstance(statement, ast.Expr) or not _is_log(statement.value):
            return False
    return True


def _is_log(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    return isinstance(node, ast.Call) and (
        called_name(node) in _PRINTS or _LOGGING.match(unparse(node.func)) is not None
    )


def _used_otherwise(scope: Scope, name: str, asked: str) -> bool:
    """Whether the code goes anywhere but into tests whose arms only log, and into logs."""
    harmless: set[int] = set()
    dropped = _dropped(scope)
    for node in own_nodes(scope):
        if isinstance(node, ast.If) and _only_logs(node.body) and _only_logs(node.orelse):
            harmless.update(map(id, walk(node.test)))
        elif isinstance(node, ast.Call) and _is_log(node):
            harmless.update(map(id, walk(node)))
        elif isinstance(node, ast.Attribute) and asked != name and _tells_nothing(node, dropped):
            harmless.add(id(node.value))  # the output of a process that has ended tells nothing of its code
        elif asked != name:
            harmless.update(map(id, _asks_for_life(node, name)))
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and id(node) not in harmless
        for node in own_nodes(scope)
    )


def _asks_for_life(test: ast.AST, name: str) -> Iterator[ast.expr]:
    """The names in a question whether a process was started or runs: ``child is None``, ``child.poll() is None``."""
    held: list[ast.expr] = []
    if isinstance(test, ast.BoolOp):
        held = test.values
    elif isinstance(test, (ast.If, ast.While, ast.IfExp)):
        held = [test.test]
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        held = [test.operand]
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        held = [test.left]
        if isinstance(test.left, ast.Call) and isinstance(test.left.func, ast.Attribute):
            held = [test.left.func.value] if test.left.func.attr == "poll" else []
    return (part for part in held if isinstance(part, ast.Name) and part.id == name)


def _tells_nothing(node: ast.Attribute, dropped: set[int]) -> bool:
    return node.attr != "returncode" and (node.attr not in ("wait", "poll") or id(node) in dropped)


def _swallowed(scope: Scope, launches: Launches) -> Iterator[tuple[ast.AST, str]]:
    """Calls that raise when the training fails, under a handler that only logs."""
    for node in own_nodes(scope):
        if not isinstance(node, ast.Try):
            continue
        calls = [n for statement in node.body for n in walk(statement) if isinstance(n, ast.Call)]
        raising = [
            n
            for n in calls
            if _starts(n, scope, launches)
            and (called_name(n) in _RAISING or (called_name(n) == "run" and _checks(n)))
        ]
        for handler in node.handlers if raising else []:
            if _catches(handler) and _only_logs(handler.body):
                yield handler, f"a failed training is only logged here: `{_short(raising[0])}` has raised"


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches what a failed child raises."""
    caught = unparse(handler.type) if handler.type is not None else "Exception"
    return (
        re.search(r"\b(?:CalledProcessError|SubprocessError|Exception|BaseException)\b", caught) is not None
    )


def _short(node: ast.AST) -> str:
    text = " ".join(unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _finding(module: Module, node: ast.AST, message: str) -> Finding:
    row, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_row, end_column = getattr(node, "end_lineno", row), getattr(node, "end_col_offset", column)
    if isinstance(node, ast.ExceptHandler):
        end_row, end_column = row, column + len("except")
    return finding(RULE, Node(Place(module.filename, row, column, end_row, end_column)), message, HELP)
