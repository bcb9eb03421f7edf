"""
# environment-set-too-late-or-renamed (SPG704)

## What it does
Finds environment variables of the communication that are set after the process group was made, or under a
name that PyTorch has given up; and `CUDA_VISIBLE_DEVICES` where it is set after CUDA has read it.

## Why is this bad
All have no effect, and nothing says so. The variables are read once, when the group is made; and the names
`NCCL_ASYNC_ERROR_HANDLING`, `NCCL_BLOCKING_WAIT` and others now begin with `TORCH_`.

## Example
```python
import os

import torch.distributed as dist

def main():
    os.environ["NCCL_ASYNC_ERROR_HANDLING"] = "1"
    dist.init_process_group("nccl")
    dist.destroy_process_group()
```

## Use instead
```python
import os

import torch.distributed as dist

def main():
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1"
    dist.init_process_group("nccl")
    dist.destroy_process_group()
```

## Known limits
The order is judged inside one block of statements, with the functions of the same file that it calls and, for the
variables that the group itself reads (`TORCH_NCCL_...`), the blocks inside. Variables set by a shell or a launcher are
not seen.

## Fix safety
Safe for a renamed variable: the same value under the new name. A variable that is set too late has no fix.

## References
- https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..model import Finding
from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Node
from ..values.value import Place
from .support_events import finding

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.modules import Module

RULE = rule(
    code="SPG704",
    name="environment-set-too-late-or-renamed",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="safe",
)
RENAMED = frozenset(
    {
        "NCCL_ASYNC_ERROR_HANDLING",
        "NCCL_BLOCKING_WAIT",
        "NCCL_DESYNC_DEBUG",
        "NCCL_ENABLE_TIMING",
        "NCCL_USE_COMM_NONBLOCKING",
    }
)
_READ_AT_INIT = frozenset({"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "TORCH_DISTRIBUTED_DEBUG"})
_READ_BY_CUDA = frozenset({"CUDA_VISIBLE_DEVICES"})
_INIT = "init_process_group"
_PREFIXES = ("NCCL_", "TORCH_NCCL_", "GLOO_")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report variables with an old name, and those set behind the init call of the same block."""
    for module in analysis.project.relevant_modules():
        content = module.source.content
        if b"environ" in content and (b"NCCL_" in content or b"init_process_group" in content):
            yield from _in_module(module)


def _in_module(module: Module) -> Iterator[Finding]:
    functions = {function.name: function.node for function in module.all_functions}
    makers = frozenset(
        name for name, node in functions.items() if any(called_name(part) == _INIT for part in walk(node))
    )
    too_late = module.contains(_INIT.encode()) or module.contains(b"set_device")
    for node in walk(module.tree):
        for name, where in _set_here(node):
            if name in RENAMED:
                yield _finding(
                    module,
                    where,
                    f"`{name}` has no effect any more: its name is `TORCH_{name}`",
                    f"set `TORCH_{name}`",
                )
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)) if too_late else ():
            if isinstance(block, list):
                yield from _behind_init(module, block, functions, makers)


def _behind_init(
    module: Module, block: list[ast.stmt], functions: Mapping[str, ast.AST], makers: frozenset[str]
) -> Iterator[Finding]:
    """Variables set by statements of a block that stand behind its init call; ``makers`` are functions with one."""
    made = bound = False
    for statement in block:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if made:
            for name, where in (*_set_here(statement), *_set_inside(statement, functions, makers)):
                if name in _READ_AT_INIT or name.startswith(_PREFIXES):
                    message = f"`{name}` is set after `init_process_group`, which has read it already"
                    yield _finding(module, where, message, "set it before the process group is made")
        if bound:
            for name, where in _set_here(statement):
                if name in _READ_BY_CUDA:
                    message = f"`{name}` is set after CUDA was asked for its devices, and has no effect"
                    yield _finding(module, where, message, "bind the device with `torch.cuda.set_device`")
        plain = isinstance(statement, (ast.Expr, ast.Assign))
        bound = bound or (plain and _asks_cuda(statement))
        made = (made or (plain and _makes_group(statement, makers))) and not _ends_group(statement)


def _set_inside(
    statement: ast.stmt, functions: Mapping[str, ast.AST], makers: frozenset[str]
) -> Iterator[tuple[str, ast.AST]]:
    """Variables that the group reads for itself, set in a block of a statement or in a function that it calls."""
    if _makes_group(statement, makers):
        return  # what makes a group of its own may set them before
    for node in _with_called(statement, functions):
        for name, where in _set_here(node):
            if node is not statement and name.startswith("TORCH_NCCL_"):
                yield name, where


def _with_called(statement: ast.stmt, functions: Mapping[str, ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a statement and of the functions of the file that it calls."""
    for node in walk(statement):
        yield node
        called = functions.get(called_name(node)) if _is_own_call(node) else None
        if called is not None:
            yield from walk(called)


def _is_own_call(node: ast.AST) -> bool:
    """``name(...)`` and ``self.name(...)``."""
    if not isinstance(node, ast.Call):
        return False
    owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return isinstance(owner, ast.Name) and (owner is node.func or owner.id in ("self", "cls"))


def _makes_group(statement: ast.stmt, makers: frozenset[str]) -> bool:
    """Whether a statement makes a group, or calls a function of the file that does."""
    return any(
        called_name(node) == _INIT or (_is_own_call(node) and called_name(node) in makers)
        for node in walk(statement)
    )


def _ends_group(statement: ast.stmt) -> bool:
    """Whether the next group may be made anew."""
    return any(called_name(node) == "destroy_process_group" for node in walk(statement))


def _asks_cuda(statement: ast.stmt) -> bool:
    """Whether a statement makes a group that may use CUDA, or binds a device."""
    for node in walk(statement):
        if isinstance(node, ast.Call):
            name = called_name(node)
            if name == _INIT:
                named = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "backend")]
                return any(isinstance(v, ast.Constant) and "nccl" in str(v.value) for v in named)
            if name == "set_device" and unparse(node.func) == "torch.cuda.set_device":
                return True
    return False


def _set_here(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The variables that one statement sets: an assignment to ``os.environ[...]`` or ``os.putenv``."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _is_environ(target.value):
                key = target.slice
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, node
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name == "setdefault" and isinstance(call.func, ast.Attribute) and _is_environ(call.func.value):
            first = call.args[0] if call.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, node


def _is_environ(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "environ"
    return isinstance(node, ast.Name) and node.id == "environ"


def _finding(module: Module, node: ast.AST, message: str, help_text: str) -> Finding:
    row, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_row, end_column = getattr(node, "end_lineno", row), getattr(node, "end_col_offset", column)
    place = Place(module.filename, row, column, end_row, end_column)
    return finding(RULE, Node(place), message, help_text, certainty="definite")
