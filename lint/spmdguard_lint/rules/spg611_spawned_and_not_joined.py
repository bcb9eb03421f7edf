"""
# spawned-and-not-joined (SPG611)

## What it does
Finds training processes that a program starts and whose end it never waits for: `spawn(..., join=False)` whose
context is dropped, and a `Process` in a file that joins none and reads no `exitcode`. So it does daemon threads that
write checkpoints or results, and that nothing waits for before the program ends.

## Why is this bad
A process that fails tells its parent by its exit status. A parent that does not ask goes on as if all were well,
reports success, and ends with status 0: the job counts as done. Nor does anyone end the other ranks, which wait
for the one that failed until their timeout.

A daemon thread is killed where it stands when the interpreter ends: the last file that it was given is missing, or
half written.

## Example
```python
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    dist.barrier()
    dist.destroy_process_group()


def launch(world):
    mp.spawn(work, args=(world,), nprocs=world, join=False)
    print("training finished")
```

## Use instead
Let `spawn` wait (it does by default): it ends all processes when one fails, and raises.

```python
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    dist.barrier()
    dist.destroy_process_group()


def launch(world):
    mp.spawn(work, args=(world,), nprocs=world)
    print("training finished")
```

With a context or with processes of your own, call `join` until it is done, and fail where an `exitcode` is not 0.

## Known limits
A context that is returned, kept in an attribute or handed on is taken to be joined. Processes are looked at where
their function communicates in the same file. Processes that are joined one after another, without a look at
their `exitcode`, are a finding of SPG712.

A thread is followed to the names and attributes that hold it, or hold the object that has made it; what goes
elsewhere (an argument, a result), or is waited for at any time, counts as waited for. Only threads count that write by
a `save` of some kind.

## Fix safety
No fix.

## References
- [torch.multiprocessing.spawn](https://docs.pytorch.org/docs/stable/multiprocessing.html#spawning-subprocesses)
- [multiprocessing.Process.exitcode](https://docs.python.org/3/library/multiprocessing.html#multiprocessing.Process.exitcode)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..names.dotted import dotted_name
from ..source.unparsing import unparse
from ..source.walking import children, walk
from ..traces.nodes import Event
from ..values.value import place_of
from .registry import rule
from .support_daemons import undrained
from .support_processes import PROCESS, SPAWN, WATCHED, communicating, started, target_of
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(code="SPG611", name="spawned-and-not-joined", severity="warning", status="stable", page=__doc__)
HELP = "join them, and end with an error where one has failed"
HELP_DAEMON = "tell it to end and `join` it before the program ends"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Calls in the files that communicate."""
    functions = communicating(analysis)
    modules = {root.module.filename: root.module for root in analysis.roots}
    for _, module in sorted(modules.items()):
        yield from _daemons(module, analysis)
        content = module.source.content
        if b"join=False" not in content and b"Process(" not in content:
            continue
        parents = {id(child): node for node in walk(module.tree) for child in children(node)}
        for call in [node for node in walk(module.tree) if isinstance(node, ast.Call)]:
            if started(module, call) in SPAWN and _goes_on(call) and _dropped(call, parents):
                name = unparse(call.func)
                message = f"nobody waits for the processes that `{name}` starts: a failure is not seen"
                yield finding_at(RULE, _event(module, call), message, HELP)
            elif started(module, call) in PROCESS and not _watches(module):
                yield from _process(module, call, functions)


def _daemons(module: Module, analysis: Analysis) -> Iterator[Finding]:
    for daemon in undrained(module, analysis.project.relevant_modules()):
        why = f"`{daemon.unused}` is never called" if daemon.unused else "nobody waits for it"
        message = (
            f"the daemon thread that runs `{daemon.target}` writes files, and {why}: the last one may be lost"
        )
        yield finding_at(RULE, _event(module, daemon.at), message, HELP_DAEMON)


def _process(module: Module, call: ast.Call, functions: set[int]) -> Iterator[Finding]:
    target = target_of(module, call, functions)
    if target:
        message = f"nobody waits for the process that runs `{target}`: a failure is not seen"
        yield finding_at(RULE, _event(module, call), message, HELP)


def _goes_on(call: ast.Call) -> bool:
    return any(
        k.arg == "join" and isinstance(k.value, ast.Constant) and not k.value.value for k in call.keywords
    )


def _dropped(call: ast.Call, parents: dict[int, ast.AST]) -> bool:
    """Whether nothing is made of a call's result: not bound, or bound to a name that is never read."""
    statement = parents.get(id(call))
    if isinstance(statement, ast.Expr):
        return True
    if not isinstance(statement, ast.Assign) or not all(isinstance(t, ast.Name) for t in statement.targets):
        return False
    scope: ast.AST | None = statement
    while scope is not None and not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        scope = parents.get(id(scope))
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    return scope is not None and not any(
        isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
        for node in walk(scope)
    )


def _watches(module: Module) -> bool:
    """Whether a file waits for some process: by ``join``, or by asking for its state."""
    for node in walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in WATCHED:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
            receiver = node.func.value
            text = isinstance(receiver, (ast.Constant, ast.JoinedStr))
            if not text and not dotted_name(receiver).endswith("path") and len(node.args) <= 1:
                return True
    return False


def _event(module: Module, node: ast.Call | ast.ClassDef) -> Event:
    text = f"class {node.name}" if isinstance(node, ast.ClassDef) else unparse(node)
    return Event(place_of(module.filename, node), "spawn", text)
