"""The one pass over a module's tree: module-level bindings, and every function and class at any depth.

Invariant: each statement is visited once, with an explicit stack; expressions are not entered, except for
the module-level walrus in files that have one. Cost: linear in the statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .bindings import AssignBinding, Binding, ClassBinding, FunctionBinding, ImportBinding
from .classes import ClassInfo
from .dotted import absolute_module
from .functions import FunctionInfo
from .scopes import own_expressions, pattern_names, target_names

if TYPE_CHECKING:
    from .modules import Module

_COMPOUND = (
    ast.If, ast.Try, ast.With, ast.For, ast.While, ast.AsyncWith, ast.AsyncFor, ast.Match,
    *([ast.TryStar] if hasattr(ast, "TryStar") else []),
)  # fmt: skip

_HOLDERS = (*_COMPOUND, ast.ExceptHandler, ast.match_case)


class _Context(NamedTuple):
    """Where a statement stands: directly in the module, a class or a function."""

    cls: ClassInfo | None
    function: FunctionInfo | None
    prefix: str
    fallback: bool


class Collected:
    """What the pass found; lists are in source order."""

    __slots__ = ("all_classes", "all_functions", "bindings", "dunder_all", "stars")

    def __init__(self) -> None:
        self.bindings: dict[str, list[Binding]] = {}
        self.all_functions: list[FunctionInfo] = []
        self.all_classes: list[ClassInfo] = []
        self.stars: list[str] = []
        self.dunder_all: list[str] | None = None


def collect(module: Module, tree: ast.Module) -> Collected:
    """Run the pass over ``tree``."""
    found = Collected()
    root = _Context(None, None, "", False)
    stack: list[tuple[ast.AST, _Context]] = [(node, root) for node in reversed(tree.body)]
    while stack:
        node, context = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = _function(found, module, node, context)
            inner = _Context(None, function, f"{context.prefix}{node.name}.<locals>.", False)
            stack.extend((child, inner) for child in reversed(node.body))
        elif isinstance(node, ast.ClassDef):
            made = _class(found, module, node, context)
            inner = _Context(made, context.function, f"{context.prefix}{node.name}.", False)
            stack.extend((child, inner) for child in reversed(node.body))
        else:
            if isinstance(node, _HOLDERS):
                _push_blocks(stack, node, context)
            if context.cls is not None:
                _class_statement(context.cls, node)
            elif context.function is None:
                _module_statement(found, module, node, context.fallback)
    return found


def _push_blocks(stack: list[tuple[ast.AST, _Context]], node: ast.AST, context: _Context) -> None:
    """Queue the blocks of a compound statement; handlers and ``else`` of an ``if`` hold fallbacks."""
    spare = context if context.fallback else context._replace(fallback=True)
    for block in ("cases", "finalbody", "orelse", "handlers", "body"):
        children = getattr(node, block, None)
        if children:
            in_spare = block == "handlers" or (block == "orelse" and isinstance(node, ast.If))
            inner = spare if in_spare else context
            stack.extend((child, inner) for child in reversed(children))


def _function(
    found: Collected, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef, context: _Context
) -> FunctionInfo:
    qualname = context.prefix + node.name
    info = FunctionInfo(module, node, node.name, qualname, context.cls, context.function)
    found.all_functions.append(info)
    if context.cls is not None:
        context.cls.add_method(info)
    elif context.function is not None:
        context.function.nested_functions[node.name] = info
    else:
        binding = FunctionBinding(info, node.lineno, context.fallback)
        found.bindings.setdefault(node.name, []).append(binding)
    return info


def _class(found: Collected, module: Module, node: ast.ClassDef, context: _Context) -> ClassInfo:
    info = ClassInfo(module, node, node.name, context.prefix + node.name, context.cls, context.function)
    found.all_classes.append(info)
    if context.cls is not None:
        context.cls.nested_classes[node.name] = info
    elif context.function is not None:
        context.function.nested_classes[node.name] = info
    else:
        binding = ClassBinding(info, node.lineno, context.fallback)
        found.bindings.setdefault(node.name, []).append(binding)
    return info


def _class_statement(cls: ClassInfo, node: ast.AST) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                cls.class_assignments[target.id] = node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        cls.annotations[node.target.id] = node.annotation
        if node.value is not None:
            cls.class_assignments[node.target.id] = node.value


def _module_statement(found: Collected, module: Module, node: ast.AST, fallback: bool) -> None:
    bindings = found.bindings
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            bindings.setdefault(name, []).append(ImportBinding(target, None, node.lineno, fallback))
    elif isinstance(node, ast.ImportFrom):
        base = absolute_module(node.module, node.level, module.name, module.is_package)
        for alias in node.names:
            if alias.name == "*":
                found.stars.append(base)
            else:
                name = alias.asname or alias.name
                bindings.setdefault(name, []).append(ImportBinding(base, alias.name, node.lineno, fallback))
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        _assignment(found, node, fallback)
    else:
        for name, binder in _other_targets(node):
            row = getattr(binder, "lineno", 1)
            bindings.setdefault(name, []).append(AssignBinding(None, binder, row, fallback))
    if module.markers.walrus and isinstance(node, ast.stmt):
        root = node.test if isinstance(node, (ast.If, ast.While)) else node
        if not isinstance(root, _COMPOUND) and module.markers_of_rows(root.lineno, root.end_lineno).walrus:
            _walruses(found, root, fallback)


def _assignment(found: Collected, node: ast.Assign | ast.AnnAssign | ast.AugAssign, fallback: bool) -> None:
    targets: list[ast.expr] = [*node.targets] if isinstance(node, ast.Assign) else [node.target]
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return
    whole = None if isinstance(node, ast.AugAssign) else node.value
    for target, value in _pairs(targets, whole):
        spare = fallback or (isinstance(value, ast.Constant) and value.value is None)
        for name in target_names(target):
            binding = AssignBinding(
                value if isinstance(target, ast.Name) else None, target, node.lineno, spare
            )
            found.bindings.setdefault(name, []).append(binding)
            if name == "__all__" and node.value is not None:
                _dunder_all(found, node.value, isinstance(node, ast.AugAssign))


def _pairs(targets: list[ast.expr], value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Targets with their values; ``a, b = x, y`` is taken apart."""
    for target in targets:
        if (
            isinstance(target, (ast.Tuple, ast.List))
            and isinstance(value, (ast.Tuple, ast.List))
            and len(target.elts) == len(value.elts)
            and not any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
        ):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def _dunder_all(found: Collected, value: ast.expr, added: bool) -> None:
    """Names of a literal ``__all__``; one that is computed leaves it unknown."""
    if isinstance(value, ast.BinOp):
        return
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        names = [e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        found.dunder_all = (found.dunder_all or []) + names if added else names


def _other_targets(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """Names bound by loops, ``with`` and ``case``, each with the node that binds it."""
    targets: list[ast.expr] = []
    if isinstance(node, (ast.For, ast.AsyncFor)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    elif isinstance(node, ast.match_case):
        return [(name, node.pattern) for name in pattern_names(node.pattern)]
    return [(name, target) for target in targets for name in target_names(target)]


def _walruses(found: Collected, root: ast.AST, fallback: bool) -> None:
    for node in own_expressions([root]):
        if isinstance(node, ast.NamedExpr):
            binding = AssignBinding(node.value, node.target, node.lineno, fallback)
            found.bindings.setdefault(node.target.id, []).append(binding)
