"""Statements. A compound statement ends where its last inner statement ends."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from .expressions import arguments, identifier, operator, parameters

if TYPE_CHECKING:
    from .converter import Converter


def _expression(c: Converter, node: cst.Expr) -> ast.stmt:
    return c.at(ast.Expr(value=c.expr(node.value)), node)


def _pass(c: Converter, node: cst.Pass) -> ast.stmt:
    return c.at(ast.Pass(), node)


def _break(c: Converter, node: cst.Break) -> ast.stmt:
    return c.at(ast.Break(), node)


def _continue(c: Converter, node: cst.Continue) -> ast.stmt:
    return c.at(ast.Continue(), node)


def _return(c: Converter, node: cst.Return) -> ast.stmt:
    return c.at(ast.Return(value=c.optional(node.value)), node)


def _raise(c: Converter, node: cst.Raise) -> ast.stmt:
    cause = None if node.cause is None else node.cause.item
    return c.at(ast.Raise(exc=c.optional(node.exc), cause=c.optional(cause)), node)


def _assert(c: Converter, node: cst.Assert) -> ast.stmt:
    return c.at(ast.Assert(test=c.expr(node.test), msg=c.optional(node.msg)), node)


def _delete(c: Converter, node: cst.Del) -> ast.stmt:
    target = node.target
    bare = isinstance(target, cst.Tuple) and not target.lpar
    made = c.expr(target, ast.Del())
    return c.at(ast.Delete(targets=made.elts if bare else [made]), node)


def _assign(c: Converter, node: cst.Assign) -> ast.stmt:
    targets = [c.expr(target.target, ast.Store()) for target in node.targets]
    return c.at(ast.Assign(targets=targets, value=c.expr(node.value), type_comment=None), node)


def _annotated_assign(c: Converter, node: cst.AnnAssign) -> ast.stmt:
    made = ast.AnnAssign(
        target=c.expr(node.target, ast.Store()),
        annotation=c.expr(node.annotation.annotation),
        value=c.optional(node.value),
        simple=int(isinstance(node.target, cst.Name) and not node.target.lpar),
    )
    return c.at(made, node)


def _augmented_assign(c: Converter, node: cst.AugAssign) -> ast.stmt:
    target = c.expr(node.target, ast.Store())
    return c.at(ast.AugAssign(target=target, op=operator(node.operator), value=c.expr(node.value)), node)


def _type_alias(c: Converter, node: Any) -> ast.stmt:
    target = c.expr(node.name, ast.Store())
    return c.at(ast.Assign(targets=[target], value=c.expr(node.value), type_comment=None), node)


def _import(c: Converter, node: cst.Import) -> ast.stmt:
    return c.at(ast.Import(names=[_alias(c, name) for name in node.names]), node)


def _import_from(c: Converter, node: cst.ImportFrom) -> ast.stmt:
    if isinstance(node.names, cst.ImportStar):
        names = [c.at(ast.alias(name="*", asname=None), node.names)]
    else:
        names = [_alias(c, name) for name in node.names]
    module = None if node.module is None else _dotted(node.module)
    return c.at(ast.ImportFrom(module=module, names=names, level=len(node.relative)), node)


def _alias(c: Converter, node: cst.ImportAlias) -> ast.alias:
    name: Any = None if node.asname is None else node.asname.name
    made = ast.alias(name=_dotted(node.name), asname=None if name is None else identifier(name))
    return c.spans.place(made, c.spans.start(node.name), c.spans.end(node.name if name is None else name))


def _dotted(node: Any) -> str:
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(identifier(node.attr))
        node = node.value
    parts.append(identifier(node))
    return ".".join(reversed(parts))


def _global(c: Converter, node: cst.Global) -> ast.stmt:
    return c.at(ast.Global(names=[identifier(item.name) for item in node.names]), node)


def _nonlocal(c: Converter, node: cst.Nonlocal) -> ast.stmt:
    return c.at(ast.Nonlocal(names=[identifier(item.name) for item in node.names]), node)


def _if(c: Converter, node: cst.If) -> ast.stmt:
    orelse = node.orelse
    otherwise = [_if(c, orelse)] if isinstance(orelse, cst.If) else _else(c, orelse)
    return c.at(ast.If(test=c.expr(node.test), body=c.suite(node.body), orelse=otherwise), node)


def _else(c: Converter, node: Any) -> list[ast.stmt]:
    """The body of an ``else`` or ``finally`` that may be absent."""
    return [] if node is None else c.suite(node.body)


def _while(c: Converter, node: cst.While) -> ast.stmt:
    return c.at(
        ast.While(test=c.expr(node.test), body=c.suite(node.body), orelse=_else(c, node.orelse)), node
    )


def _for(c: Converter, node: cst.For) -> ast.stmt:
    kind = ast.For if node.asynchronous is None else ast.AsyncFor
    made = kind(
        target=c.expr(node.target, ast.Store()),
        iter=c.expr(node.iter),
        body=c.suite(node.body),
        orelse=_else(c, node.orelse),
        type_comment=None,
    )
    return c.at(made, node)


def _with(c: Converter, node: cst.With) -> ast.stmt:
    kind = ast.With if node.asynchronous is None else ast.AsyncWith
    items = []
    for item in node.items:
        target = None if item.asname is None else c.expr(item.asname.name, ast.Store())
        items.append(ast.withitem(context_expr=c.expr(item.item), optional_vars=target))
    return c.at(kind(items=items, body=c.suite(node.body), type_comment=None), node)


def _try(c: Converter, node: Any) -> ast.stmt:
    starred = isinstance(node, cst.TryStar) and sys.version_info >= (3, 11)
    kind: Any = getattr(ast, "TryStar") if starred else ast.Try  # noqa: B009 - absent before Python 3.11
    made = kind(
        body=c.suite(node.body),
        handlers=[_handler(c, handler) for handler in node.handlers],
        orelse=_else(c, node.orelse),
        finalbody=_else(c, node.finalbody),
    )
    placed: ast.stmt = c.at(made, node)
    return placed


def _handler(c: Converter, node: Any) -> ast.ExceptHandler:
    name = None if node.name is None else identifier(node.name.name)
    return c.at(ast.ExceptHandler(type=c.optional(node.type), name=name, body=c.suite(node.body)), node)


def _function(c: Converter, node: cst.FunctionDef) -> ast.stmt:
    kind = ast.FunctionDef if node.asynchronous is None else ast.AsyncFunctionDef
    made = kind(
        name=identifier(node.name),
        args=parameters(c, node.params),
        body=c.suite(node.body),
        decorator_list=_decorators(c, node.decorators),
        returns=None if node.returns is None else c.expr(node.returns.annotation),
        type_comment=None,
    )
    _drop_type_parameters(made)
    return c.at(made, node)


def _class(c: Converter, node: cst.ClassDef) -> ast.stmt:
    bases, keywords = arguments(c, [*node.bases, *node.keywords])
    made = ast.ClassDef(
        name=identifier(node.name),
        bases=bases,
        keywords=keywords,
        body=c.suite(node.body),
        decorator_list=_decorators(c, node.decorators),
    )
    _drop_type_parameters(made)
    return c.at(made, node)


def _drop_type_parameters(made: Any) -> None:
    if "type_params" in made._fields:  # Python 3.12
        made.type_params = []


def _decorators(c: Converter, nodes: Sequence[cst.Decorator]) -> list[ast.expr]:
    return [c.expr(node.decorator) for node in nodes]


def _match(c: Converter, node: cst.Match) -> ast.stmt:
    cases = []
    for case in node.cases:
        guard = c.optional(case.guard)
        cases.append(ast.match_case(pattern=c.pattern(case.pattern), guard=guard, body=c.suite(case.body)))
    return c.at(ast.Match(subject=c.expr(node.subject), cases=cases), node)


HANDLERS: dict[str, Callable[[Any, Any], ast.stmt]] = {
    "Expr": _expression,
    "Pass": _pass,
    "Break": _break,
    "Continue": _continue,
    "Return": _return,
    "Raise": _raise,
    "Assert": _assert,
    "Del": _delete,
    "Assign": _assign,
    "AnnAssign": _annotated_assign,
    "AugAssign": _augmented_assign,
    "TypeAlias": _type_alias,
    "Import": _import,
    "ImportFrom": _import_from,
    "Global": _global,
    "Nonlocal": _nonlocal,
    "If": _if,
    "While": _while,
    "For": _for,
    "With": _with,
    "Try": _try,
    "TryStar": _try,
    "FunctionDef": _function,
    "ClassDef": _class,
    "Match": _match,
}
