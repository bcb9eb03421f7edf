"""
# group-made-each-round (SPG610)

## What it does
Finds loops that make the same process group anew in each round, use it there, and do not destroy it.

## Why is this bad
A group keeps its communicators, threads and buffers until it is destroyed. A training loop that makes one in each step
runs out of memory, file descriptors or NCCL communicators after some hours, on a step that looks like any other one.
Making a group is slow as well: all ranks meet for it.

## Example
```python
import torch.distributed as dist


def train(steps, x):
    for _ in range(steps):
        pair = dist.new_group([0, 1])
        dist.all_reduce(x, group=pair)
```

## Use instead
```python
import torch.distributed as dist


def train(steps, x):
    pair = dist.new_group([0, 1])
    for _ in range(steps):
        dist.all_reduce(x, group=pair)
```

## Known limits
Groups whose ranks follow from the loop's own variables are left alone, since each is another one; so are groups that
are made under a condition in the loop, which may make each of them once, and groups that a loop over `range` appends to
a list after a barrier at most: several are wanted, to be used later.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#groups
- The MPI Bugs Initiative (MBI): error class "resource leak"
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..names.dotted import dotted_name
from ..source.walking import walk
from ..traces.files import parts_of
from ..traces.nodes import Branch, Loop, Op, every_node
from ..values.value import Place
from .registry import rule
from .support_events import flat
from .support_messages import handles
from .support_trees import Path, Step, finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.modules import Module
    from ..values.value import Value

RULE = rule(code="SPG610", name="group-made-each-round", severity="warning", status="stable", page=__doc__)
HELP = "make the group once, before the loop, or destroy it at the end of each round"
_MAKING = frozenset({"new_group", "new_subgroups"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Groups that are made, used and kept in each round of a loop."""
    modules = {root.module.filename: root.module for root in analysis.roots}
    for root in analysis.roots:
        if root.contents.ops.isdisjoint(_MAKING) or not root.contents.num_loops:
            continue
        for step in root.steps:
            op = step.node
            if isinstance(op, Op) and op.name in _MAKING:
                loop = _loop_around(step.path)
                if loop is not None and _same_each_round(op, loop) and _used_and_kept(op, loop):
                    module = modules.get(op.place.filename)
                    if module is None or not _put_aside(module, op, loop):
                        yield _finding(step, op, loop)


def _finding(step: Step, op: Op, loop: Loop) -> Finding:
    message = f"`{op.text}` makes a group in each round of `{loop.text}`, and nothing destroys it"
    return finding_at(RULE, op, message, HELP, calls=step.calls, reached=loop)


def _loop_around(path: Path) -> Loop | None:
    """The innermost loop around a call; None where a condition stands in between."""
    for node, part in reversed(path):
        if isinstance(node, Branch):
            return None
        if isinstance(node, Loop):
            return node if part == "body" and node.form in ("for", "while") else None
    return None


def _same_each_round(op: Op, loop: Loop) -> bool:
    """Whether the group's ranks have nothing to do with what the loop changes."""
    return not any(_of_round(part, loop.place) for value in op.invariant for part in parts_of(value))


def _of_round(value: Value, loop: Place) -> bool:
    if value.tag in ("sym", "extobj", "obj"):
        for item in flat(value.data):
            inside = isinstance(item, Place) and item.filename == loop.filename
            if inside and isinstance(item, Place) and loop.row <= item.row <= loop.end_row:
                return True
    return False


def _put_aside(module: Module, op: Op, loop: Loop) -> bool:
    """Whether a loop over ``range`` appends each group to a list and only tries it out: several of them are wanted."""
    inside = (node for node in every_node(loop.body) if isinstance(node, Op) and node.group is not None)
    if any(
        op.place in handles(one.group) and one.name != "barrier" for one in inside if one.group is not None
    ):
        return False
    for node in walk(module.tree):
        if isinstance(node, ast.For) and node.lineno == loop.place.row and _is_range(node.iter):
            names = {
                target.id
                for one in walk(node)
                if isinstance(one, ast.Assign) and one.lineno == op.place.row
                for target in one.targets
                if isinstance(target, ast.Name)
            }
            return any(_adds(one, names, op) for one in walk(node))
    return False


def _is_range(iterated: ast.expr) -> bool:
    return isinstance(iterated, ast.Call) and dotted_name(iterated.func) == "range"


def _adds(node: ast.AST, names: set[str], op: Op) -> bool:
    """Whether a node is a call that adds a group to a list."""
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr != "append"
    ):
        return False
    given = node.args[0] if node.args else None
    if isinstance(given, ast.Name):
        return given.id in names
    return given is not None and (given.lineno, given.col_offset) == (op.place.row, op.place.column)


def _used_and_kept(op: Op, loop: Loop) -> bool:
    """Whether the loop communicates on the group and does not destroy it."""
    used = False
    for node in every_node(loop.body):
        if isinstance(node, Op) and node.group is not None and op.place in handles(node.group):
            if node.name == "destroy_process_group":
                return False
            used = used or node.kind != "lifecycle"
    return used
