"""Tensors in the CPU's memory: those that a function makes without a device and hands to a collective.

Looked up in the text: the call at a place, its first argument, and what the function assigns to that name. A project
that sets a default device makes its tensors there.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ..names.dotted import called_name
from ..source.walking import walk
from ..values.value import is_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Place

_MAKING = frozenset({"tensor", "as_tensor", "zeros", "ones", "full", "empty", "rand", "randn", "arange"})
_KEEPING = frozenset(
    {"clone", "detach", "float", "long", "int", "double", "bool", "unsqueeze", "view", "cpu"}
)
_ELSEWHERE = re.compile(rb"set_default_device|set_default_tensor_type|with torch\.device\(")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def in_cpu_memory(analysis: Analysis, place: Place) -> bool:
    """Whether the collective at a place gets a tensor that its own function has made in the CPU's memory."""
    module = analysis.project.by_filename.get(place.filename)
    if module is None or any(m.asked.matches(_ELSEWHERE) for m in analysis.project.all_modules):
        return False
    scope: ast.AST = module.tree
    for node in walk(module.tree):
        if isinstance(node, _Function) and node.lineno <= place.row <= (node.end_lineno or 0):
            scope = node
    for node in walk(scope):
        if isinstance(node, ast.Call) and is_at(node, place):
            given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "tensor")]
            return bool(given) and _made_there(scope, given[0])
    return False


def _made_there(scope: ast.AST, given: ast.expr) -> bool:
    """Whether every value of an argument is a tensor made without a device."""
    if not isinstance(given, ast.Name):
        return _makes(given)
    stores = [n for n in walk(scope) if isinstance(n, ast.Name) and n.id == given.id and _is_store(n)]
    made = [
        node.value
        for node in walk(scope)
        if isinstance(node, ast.Assign) and any(target in stores for target in node.targets)
    ]
    return bool(made) and len(made) == len(stores) and all(_makes(value) for value in made)


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _makes(value: ast.expr) -> bool:
    """``torch.tensor([1])``, also behind calls that leave it where it is."""
    if not isinstance(value, ast.Call):
        return False
    name = called_name(value)
    if isinstance(value.func, ast.Attribute) and name in _KEEPING:
        return name == "cpu" or _makes(value.func.value)
    if name not in _MAKING or not isinstance(value.func, ast.Attribute):
        return False
    device = next((k.value for k in value.keywords if k.arg == "device"), None)
    return device is None or (isinstance(device, ast.Constant) and device.value == "cpu")
