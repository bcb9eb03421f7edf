"""The libcst-to-``ast`` converter: dispatch by node class, and the few helpers every handler needs.

A handler takes the converter and a libcst node and returns the ``ast`` node, positions set. Handlers are
looked up by class name, so that a libcst release without the newest nodes still imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import libcst as cst

from . import expressions, patterns, statements, strings, subscripts
from .spans import Made, Spans

_EXPRESSIONS = {**expressions.HANDLERS, **strings.HANDLERS, **subscripts.HANDLERS}


class UnknownSyntax(Exception):
    """libcst read a construct that this converter has no handler for."""


class Converter:
    """Converts one module; ``spans`` knows where its nodes stand."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans

    def module(self, node: cst.Module) -> ast.Module:
        """The whole file."""
        return ast.Module(body=self.block(node.body), type_ignores=[])

    def expr(self, node: Any, ctx: ast.expr_context | None = None) -> Any:
        """An expression; with ``ctx`` it and its parts become a store or delete target."""
        handler = _EXPRESSIONS.get(type(node).__name__)
        if handler is None:
            raise UnknownSyntax(f"unknown syntax: {type(node).__name__}")
        made = handler(self, node)
        return made if ctx is None else set_context(made, ctx)

    def optional(self, node: Any) -> Any:
        """An expression that may be absent."""
        return None if node is None else self.expr(node)

    def pattern(self, node: Any) -> Any:
        """A pattern of a ``match`` statement."""
        handler = patterns.HANDLERS.get(type(node).__name__)
        if handler is None:
            raise UnknownSyntax(f"unknown syntax: {type(node).__name__}")
        return handler(self, node)

    def block(self, nodes: Iterable[Any]) -> list[ast.stmt]:
        """The statements of a body, simple statements joined by semicolons taken apart."""
        made: list[ast.stmt] = []
        for node in nodes:
            if isinstance(node, cst.SimpleStatementLine):
                made.extend(self._statement(small) for small in node.body)
            else:
                made.append(self._statement(node))
        return made

    def suite(self, node: Any) -> list[ast.stmt]:
        """An indented block, or the statements after a colon on the same line."""
        if isinstance(node, cst.SimpleStatementSuite):
            return [self._statement(small) for small in node.body]
        return self.block(node.body)

    def at(self, made: Made, node: Any) -> Made:
        """Place ``made`` on the span of ``node``, its own parentheses left out."""
        return self.spans.place(made, self.spans.start(node), self.spans.end(node))

    def _statement(self, node: Any) -> ast.stmt:
        handler = statements.HANDLERS.get(type(node).__name__)
        if handler is None:
            raise UnknownSyntax(f"unknown syntax: {type(node).__name__}")
        return handler(self, node)


def set_context(node: Any, ctx: ast.expr_context) -> Any:
    """Make ``node`` a target, as the grammar does: through tuples, lists and stars."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Starred, ast.List, ast.Tuple)):
        node.ctx = ctx
    if isinstance(node, ast.Starred):
        set_context(node.value, ctx)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            set_context(element, ctx)
    return node
