"""
# gathered-parameters-edited (SPG315)

## What it does
Finds parameters that are changed inside `deepspeed.zero.GatheredParameters` without a `modifier_rank`.

## Why is this bad
Under ZeRO-3 each rank holds a shard of a parameter. The context gathers the whole one, and gives it up at its end. Only
with `modifier_rank` is what that rank has written sent to the shards; without it the change is thrown away, and nothing
says so: the weights keep the values that they had.

## Example
```python
import deepspeed
import torch


def start_over(layer):
    with deepspeed.zero.GatheredParameters(layer.weight):
        torch.nn.init.zeros_(layer.weight)
```

## Use instead
```python
import deepspeed
import torch


def start_over(layer):
    with deepspeed.zero.GatheredParameters(layer.weight, modifier_rank=0):
        torch.nn.init.zeros_(layer.weight)
```

## Known limits
Parameters are known by how they are written: in the call, in a list that it names, or as what a loop in the block goes
through. A function of the project that changes them is not followed.

## Fix safety
No fix: where ranks write different values, the author must choose whose count.

## References
- [deepspeed.zero.GatheredParameters](https://deepspeed.readthedocs.io/en/latest/zero3.html#deepspeed.zero.GatheredParameters)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..names.dotted import called_name, dotted_name
from ..names.symbols import ExternalSymbol
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Event
from ..values.value import place_of
from .registry import rule
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(code="SPG315", name="gathered-parameters-edited", severity="error", status="stable", page=__doc__)
HELP = "name the rank whose values count: `modifier_rank=0`"
_LIBRARIES = ("deepspeed.", "accelerate.")
_NO_CHANGE = frozenset({"requires_grad_", "detach_", "share_memory_"})
_RENEWING = frozenset({"reset_parameters", "load_state_dict"})
_GIVING = frozenset({"parameters", "named_parameters"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Blocks that gather parameters for reading, and write to them."""
    for module in analysis.project.relevant_modules():
        if b"GatheredParameters" not in module.source.content:
            continue
        for scope in walk(module.tree):
            if isinstance(scope, (ast.With, ast.AsyncWith)):
                for item in scope.items:
                    call = item.context_expr
                    if isinstance(call, ast.Call) and _gathers_to_read(module, call):
                        yield from _block(module, scope, call)


def _gathers_to_read(module: Module, call: ast.Call) -> bool:
    """Whether a call gathers parameters and names no rank that changes them."""
    if called_name(call) != "GatheredParameters" or not call.args or len(call.args) > 1:
        return False
    symbol = module.project.resolve(module, dotted_name(call.func))
    known = isinstance(symbol, ExternalSymbol) and symbol.qualname.startswith(_LIBRARIES)
    return known and all(
        k.arg is not None
        and (k.arg != "modifier_rank" or (isinstance(k.value, ast.Constant) and k.value.value is None))
        for k in call.keywords
    )


def _block(module: Module, block: ast.With | ast.AsyncWith, call: ast.Call) -> Iterator[Finding]:
    """The first change of a gathered parameter in a block."""
    gathered = set(_texts(_written_out(module, call)))
    inside = [node for statement in block.body for node in walk(statement)]
    for node in inside:
        if isinstance(node, (ast.For, ast.AsyncFor)):
            gathered.update(_looped(node, gathered))
    changes = [node for node in inside if _changes(node, gathered)]
    if changes:
        first = min(changes, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]
        text = unparse(first).splitlines()[0]
        message = (
            f"`{text}` changes a parameter that was gathered without `modifier_rank`: the change is lost"
        )
        edit = Event(place_of(module.filename, first), "edit", text)
        event = Event(place_of(module.filename, call), "gather", unparse(call))
        yield finding_at(RULE, event, message, HELP, certainty="likely", reached=edit)


def _written_out(module: Module, call: ast.Call) -> ast.expr:
    """What is gathered: the argument, or the only value that its name is given in the file."""
    argument = call.args[0]
    if not isinstance(argument, ast.Name):
        return argument
    values = [
        node.value
        for node in walk(module.tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == argument.id for t in node.targets)
    ]
    return values[0] if len(values) == 1 and isinstance(values[0], (ast.List, ast.Tuple)) else argument


def _texts(gathered: ast.expr) -> Iterator[str]:
    """How the gathered parameters are written, and the collection that holds them."""
    if isinstance(gathered, (ast.List, ast.Tuple)):
        for item in gathered.elts:
            yield from _texts(item)
    elif isinstance(gathered, ast.Call) and called_name(gathered) in ("list", "tuple") and gathered.args:
        yield from _texts(gathered.args[0])
    else:
        yield unparse(gathered)


def _looped(loop: ast.For | ast.AsyncFor, gathered: set[str]) -> set[str]:
    """The names under which a loop has gathered parameters."""
    iterated = loop.iter
    through = any(text in gathered for text in _texts(iterated))
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute) and not through:
        owner = unparse(iterated.func.value)
        through = called_name(iterated) in _GIVING and f"{owner}.parameters()" in gathered
    if not through:
        return set()
    target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
    return {target.id} if isinstance(target, ast.Name) else set()


def _changes(node: ast.AST, gathered: set[str]) -> bool:
    """Whether a statement or call writes to a gathered parameter in place."""
    if isinstance(node, ast.Assign):
        return any(_is_part(target, gathered) for target in node.targets)
    if isinstance(node, ast.AugAssign):
        return _is_part(node.target, gathered) or unparse(node.target) in gathered
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, node.func.value
    if name in _RENEWING:
        owner = f"{unparse(receiver)}."
        return any(text.startswith(owner) for text in gathered)
    if not name.endswith("_") or name.startswith("_") or name in _NO_CHANGE:
        return False
    if dotted_name(receiver).rpartition(".")[2] == "init":
        return bool(node.args) and _of(node.args[0]) in gathered
    return _of(receiver) in gathered


def _is_part(target: ast.expr, gathered: set[str]) -> bool:
    """``weight[rows]``, ``weight.data`` and ``weight.data[rows]`` as what is assigned to."""
    direct = isinstance(target, ast.Subscript) or (
        isinstance(target, ast.Attribute) and target.attr == "data"
    )
    return direct and _of(target) in gathered


def _of(node: ast.expr) -> str:
    """The tensor that ``t[rows]``, ``t.data`` and ``t.data[rows]`` are views of."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    return unparse(node)
