"""
# children-awaited-in-order (SPG712)

## What it does
Finds launchers of one's own that start the ranks of a job as child processes and wait for them one after another; of
`multiprocessing`, those that join them so and ask none for its `exitcode` before.

## Why is this bad
When a rank dies, the others wait for it in their next collective. A launcher that waits for the first child learns
nothing of the third: the first one does not end, because the third is gone. The job stands still until the timeout
of the process group, and holds its devices all that time. `Process.join` returns where the process has failed as it
does where it is done: a launcher that only joins then goes on, and reports a success.

## Example
```python
import os
import subprocess


def launch(size, command):
    children = []
    for rank in range(size):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size))
        children.append(subprocess.Popen(command, env=env))
    for child in children:
        child.wait()
```

## Use instead
Look at all of them, and end the others as soon as one has failed:

```python
import os
import subprocess
import time


def launch(size, command):
    children = []
    for rank in range(size):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size))
        children.append(subprocess.Popen(command, env=env))
    while any(child.poll() is None for child in children):
        if any(child.poll() for child in children):
            for child in children:
                child.terminate()
        time.sleep(0.5)
    return max(child.wait() for child in children)
```

or let `torchrun` or `torch.multiprocessing.spawn(..., join=True)` do it.

## Known limits
Children are known for ranks where the file writes `RANK` and `WORLD_SIZE` for them, or gives each a `--node-rank`.
Processes of `multiprocessing` are known where a loop of the same file starts them with a function of the project that
communicates. A file that looks at an `exitcode` elsewhere than behind the `join` of a function, or at a `sentinel`, or
hears from its processes through a queue or pipe, is left alone. So is one that asks each for its `exitcode` behind the
`join`, where the group is of gloo and given a timeout of ten minutes at most: its ranks end by themselves once one is
gone.

## Fix safety
No fix.

## References
- https://github.com/pytorch/pytorch/issues/41067
- [multiprocessing.Process.exitcode](https://docs.python.org/3/library/multiprocessing.html#multiprocessing.Process.exitcode)
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
from ..values.value import Place, place_of
from .support_events import finding
from .support_launches import Function, functions_of, own_nodes
from .support_processes import PROCESS, communicating, started, target_of

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(
    code="SPG712", name="children-awaited-in-order", severity="warning", status="stable", page=__doc__
)
HELP = "poll all of them, and end the others as soon as one has failed"
_RANK = re.compile(
    rb"""["'](?:RANK|LOCAL_RANK|SLURM_PROCID)["']|\b(?:RANK|LOCAL_RANK)=|--node[-_]rank|--machine[-_]rank"""
)
_WORLD = re.compile(rb"""["']WORLD_SIZE["']|\bWORLD_SIZE=|--nnodes|--num[-_]machines""")
_WATCHES = re.compile(rb"SIGCHLD|os\.waitpid\(-1|os\.wait\(\)|asyncio|as_completed|pidfd|sentinel")
_HEARS = re.compile(rb"sentinel|is_alive|\b\w*Queue\(|\bPipe\(|\bManager\(")
_ENDS = frozenset({"terminate", "kill", "send_signal", "killpg"})
_LOOPS = (ast.For, ast.AsyncFor, ast.ListComp, ast.GeneratorExp, ast.SetComp)
_SHORT = 600
_SECONDS = {"seconds": 1, "minutes": 60}
Scope = Function | ast.Module


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report loops over the ranks' processes that wait for each in turn."""
    functions = communicating(analysis)
    for module in analysis.project.relevant_modules():
        content = module.source.content
        if _WATCHES.search(content):
            continue
        popen = b"Popen" in content and _RANK.search(content) and _WORLD.search(content)
        if popen and _starts_several(module.tree, {"Popen"}):
            yield from _report(module, ("wait", "communicate"), "a later one that dies is not noticed")
        joined = b"Process(" in content and not popen and not _HEARS.search(content)
        if joined and _starts_several(module.tree, _ranks_started(module, functions)):
            if b"exitcode" not in content:
                told = "one that dies is not noticed, as nothing asks for an `exitcode`"
                yield from _report(module, ("join",), told)
            elif _asks_afterwards(module) and not _ends_soon(module):
                yield from _report(module, ("join",), "a later one that dies is not noticed")


def _report(module: Module, words: tuple[str, ...], told: str) -> Iterator[Finding]:
    for scope in functions_of(module):
        for wait, loop in _waits(scope, words):
            place = place_of(module.filename, wait)
            message = f"`{unparse(wait)}` waits for each rank in turn: {told}"
            looped = Place(module.filename, loop.lineno, loop.col_offset, loop.lineno, loop.col_offset)
            yield finding(
                RULE, Node(place), message, HELP, steps=[(looped, "the processes are gone through here")]
            )


def _ranks_started(module: Module, functions: set[int]) -> set[str]:
    """How the calls are written that start a process which communicates."""
    calls = (node for node in walk(module.tree) if isinstance(node, ast.Call))
    return {
        called_name(call)
        for call in calls
        if started(module, call) in PROCESS and target_of(module, call, functions)
    }


def _starts_several(tree: ast.Module, starts: set[str]) -> bool:
    """Whether processes are started in a loop, or by a function that a loop calls."""
    makers = set(starts)
    for node in walk(tree):
        if isinstance(node, Function) and any(
            called_name(n) in starts for n in walk(node) if isinstance(n, ast.Call)
        ):
            makers.add(node.name)
    loops = (node for node in walk(tree) if isinstance(node, _LOOPS))
    return any(called_name(n) in makers for loop in loops for n in walk(loop) if isinstance(n, ast.Call))


def _asks_afterwards(module: Module) -> bool:
    """Whether each exit code is asked for behind a wait of the same function, and not again and again."""
    behind: set[int] = set()
    for scope in functions_of(module):
        nodes = list(own_nodes(scope))
        first = min((wait.lineno for wait, _ in _waits(scope, ("join",))), default=None)
        again = {id(inner) for node in nodes if isinstance(node, ast.While) for inner in walk(node)}
        for node in nodes if first is not None else ():
            if isinstance(node, ast.Attribute) and id(node) not in again and node.lineno >= (first or 0):
                behind.add(id(node))
    asked = [n for n in walk(module.tree) if isinstance(n, ast.Attribute) and n.attr == "exitcode"]
    return bool(asked) and all(id(node) in behind for node in asked)


def _ends_soon(module: Module) -> bool:
    """Whether the groups are of gloo, with a short timeout that is told: a rank whose peer is gone fails by itself."""
    calls = [n for n in walk(module.tree) if isinstance(n, ast.Call)]
    made = [call for call in calls if called_name(call) == "init_process_group"]
    return bool(made) and all(_of_gloo(call) and _is_short(call) for call in made)


def _of_gloo(init: ast.Call) -> bool:
    told = (*init.args[:1], *(k.value for k in init.keywords if k.arg == "backend"))
    return any(isinstance(value, ast.Constant) and value.value == "gloo" for value in told)


def _is_short(init: ast.Call) -> bool:
    """Whether the timeout is written as a few minutes at most."""
    limit = next((k.value for k in init.keywords if k.arg == "timeout"), None)
    if not isinstance(limit, ast.Call) or called_name(limit) != "timedelta" or limit.args:
        return False
    seconds = 0.0
    for keyword in limit.keywords:
        number = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if not isinstance(number, (int, float)):
            return False
        seconds += number * _SECONDS.get(keyword.arg or "", _SHORT + 1)
    return 0 < seconds <= _SHORT


def _waits(scope: Scope, words: tuple[str, ...]) -> Iterator[tuple[ast.Call, ast.expr | ast.stmt]]:
    """The waits for each process of a loop in turn, in a function that has neither polled nor ended them before."""
    looked = min(
        (n.lineno for n in own_nodes(scope) if isinstance(n, ast.Call) and _sees_all(n, scope)), default=None
    )
    for loop in own_nodes(scope):
        if not isinstance(loop, _LOOPS):
            continue
        names = set(_targets(loop))
        body: list[ast.AST] = list(loop.body) if isinstance(loop, (ast.For, ast.AsyncFor)) else [loop.elt]
        for node in (inner for part in body for inner in walk(part)):
            if isinstance(node, ast.Call) and called_name(node) in words and not _bounded(node):
                owner = node.func.value if isinstance(node.func, ast.Attribute) else None
                if (
                    isinstance(owner, ast.Name)
                    and owner.id in names
                    and (looked is None or looked > node.lineno)
                ):
                    yield node, loop
                    break


def _sees_all(call: ast.Call, scope: Scope) -> bool:
    """Whether a call ends processes, or polls them in a loop that goes on until all have ended."""
    if called_name(call) in _ENDS:
        return True
    if called_name(call) not in ("poll", "wait"):
        return False
    return any(
        isinstance(node, ast.While) and any(inner is call for inner in walk(node))
        for node in own_nodes(scope)
    )


def _targets(loop: ast.For | ast.AsyncFor | ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Iterator[str]:
    """The variables of a loop."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        targets = [loop.target]
    else:
        targets = [generator.target for generator in loop.generators]
    for target in targets:
        yield from (node.id for node in walk(target) if isinstance(node, ast.Name))


def _bounded(call: ast.Call) -> bool:
    """Whether a wait has a timeout."""
    return any(keyword.arg == "timeout" for keyword in call.keywords) or (
        called_name(call) in ("wait", "join") and bool(call.args)
    )
