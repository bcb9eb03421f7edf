"""Re-exports of lazily imported packages: ``_import_structure = {"submodule": ["Name", ...]}``.

Only what is written out is read: dict literals (also combined by conditions), ``_import_structure["sub"] =
[...]``, and ``.append`` / ``.extend`` on an entry. Anything computed stays unknown.
"""

from __future__ import annotations

import ast

from .scopes import statements

_NAME = "_import_structure"


def lazy_exports(tree: ast.Module) -> dict[str, str]:
    """Exported name -> submodule; a submodule exports itself."""
    exports: dict[str, str] = {}
    for node in statements(tree.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if _is_structure(target) and isinstance(node.value, ast.Dict):
                for key, value in zip(node.value.keys, node.value.values, strict=True):
                    _add(exports, key, value)
            elif isinstance(target, ast.Subscript) and _is_structure(target.value):
                _add(exports, target.slice, node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _call(exports, node.value)
    return exports


def _call(exports: dict[str, str], call: ast.Call) -> None:
    """``_import_structure["sub"].append("Name")`` or ``.extend([...])``."""
    method = call.func
    if not (isinstance(method, ast.Attribute) and method.attr in ("append", "extend") and call.args):
        return
    if isinstance(method.value, ast.Subscript) and _is_structure(method.value.value):
        _add(exports, method.value.slice, call.args[0])


def _is_structure(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == _NAME


def _add(exports: dict[str, str], key: ast.expr | None, value: ast.expr | None) -> None:
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        return
    exports.setdefault(key.value.partition(".")[0], "")
    names = value.elts if isinstance(value, (ast.List, ast.Tuple, ast.Set)) else [value]
    for name in names:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            exports[name.value] = key.value
