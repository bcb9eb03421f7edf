"""One function's scope: which names it binds, what it imports, whether it yields.

Invariant: statements are visited with an explicit stack (an ``elif`` chain nests without limit) and
nested functions and classes are not entered. Cost: linear in the statements; expressions are entered
only where the file contains a walrus, ``yield`` or ``match`` at all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..source.walking import walk
from .dotted import absolute_module

ScopeNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop)
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@dataclass(frozen=True, slots=True)
class TextMarkers:
    """Whether a file's text contains what makes expressions worth entering."""

    walrus: bool
    yields: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """What a function's body binds.

    ``imports`` maps a local name to the dotted name it is bound to; ``rebound`` are those that it assigns, too.
    """

    local_names: frozenset[str]
    global_names: frozenset[str]
    nonlocal_names: frozenset[str]
    imports: dict[str, str]
    has_yield: bool
    rebound: frozenset[str] = frozenset()


class _Scan:
    """Accumulates one scope."""

    def __init__(self, module_name: str, is_package: bool) -> None:
        self.module_name = module_name
        self.is_package = is_package
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.imports: dict[str, str] = {}

    def statement(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.bound.update(target_names(target))
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
            self.bound.update(target_names(node.target))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self.bound.update(target_names(item.optional_vars))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.bound.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, meaning in imported_names(node, self.module_name, self.is_package):
                self.imports.setdefault(name, meaning)
        elif isinstance(node, ast.ExceptHandler):
            if node.name:
                self.bound.add(node.name)
        elif isinstance(node, ast.match_case):
            self.bound.update(pattern_names(node.pattern))
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self.bound.update(target_names(target))
        elif isinstance(node, ast.Global):
            self.globals.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            self.nonlocals.update(node.names)


def scan_scope(node: ScopeNode, module_name: str, is_package: bool, markers: TextMarkers) -> Scope:
    """Read the scope of one function."""
    scan = _Scan(module_name, is_package)
    args = node.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            scan.bound.add(arg.arg)
    roots: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    if not isinstance(node, ast.Lambda):
        for statement in statements(node.body):
            scan.statement(statement)
    has_yield = False
    if markers.walrus or markers.yields:
        for inner in own_expressions(roots):
            if isinstance(inner, ast.NamedExpr):
                scan.bound.update(target_names(inner.target))
            elif isinstance(inner, (ast.Yield, ast.YieldFrom)):
                has_yield = True
    outer = scan.globals | scan.nonlocals
    return Scope(
        frozenset((scan.bound | scan.imports.keys()) - outer),
        frozenset(scan.globals),
        frozenset(scan.nonlocals),
        scan.imports,
        has_yield,
        frozenset(scan.bound & scan.imports.keys()),
    )


def does_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is ``pass``, a constant alone or ``raise NotImplementedError``."""
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Every statement, handler and case of a body in source order, nested definitions not entered."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            push_blocks(stack, node)


def push_blocks(stack: list[ast.AST], node: ast.AST) -> None:
    """Put the statements inside a compound statement on the stack, so that the first is popped first."""
    for block in reversed(_BLOCKS):
        inner = getattr(node, block, None)
        if inner.__class__ is list:
            stack.extend(reversed(inner))


def own_expressions(roots: list[ast.AST]) -> Iterator[ast.AST]:
    """Every node below the roots that is evaluated in their own scope.

    A walrus in a comprehension binds in the enclosing function, so comprehensions are entered.
    """
    stack = list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, _NESTED):
            continue
        yield node
        if isinstance(node, _LEAVES):
            continue
        for field in node._fields:
            value = getattr(node, field, None)
            if value.__class__ is list:
                stack.extend(child for child in value if isinstance(child, ast.AST))
            elif isinstance(value, ast.AST):
                stack.append(value)


def target_names(target: ast.AST) -> Iterator[str]:
    """The plain names bound by an assignment target."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List, ast.Starred)):
        for node in walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                yield node.id


def pattern_names(pattern: ast.AST) -> Iterator[str]:
    """The names captured by a ``case`` pattern."""
    for node in walk(pattern):
        if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def imported_names(
    node: ast.Import | ast.ImportFrom, module_name: str, is_package: bool
) -> Iterator[tuple[str, str]]:
    """``(local name, dotted target)`` for each name of an import; ``import *`` binds none here."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, alias.name
            else:
                top = alias.name.partition(".")[0]
                yield top, top
        return
    base = absolute_module(node.module, node.level, module_name, is_package)
    for alias in node.names:
        if alias.name != "*":
            yield alias.asname or alias.name, f"{base}.{alias.name}" if base else alias.name
