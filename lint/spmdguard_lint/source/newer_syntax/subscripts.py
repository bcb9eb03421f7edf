"""Subscripts: indexes, slices, and the tuples they form without parentheses."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import libcst as cst

from .spans import Point

if TYPE_CHECKING:
    from .converter import Converter


def _subscript(c: Converter, node: cst.Subscript) -> ast.expr:
    parts = [_slice(c, element) for element in node.slice]
    index: ast.expr = parts[0]
    if len(parts) > 1 or isinstance(node.slice[-1].comma, cst.Comma) or isinstance(index, ast.Starred):
        index = ast.Tuple(elts=parts, ctx=ast.Load())
        c.spans.place(index, _slice_start(c, node.slice[0]), _element_end(c, node.slice[-1]))
    return c.at(ast.Subscript(value=c.expr(node.value), slice=index, ctx=ast.Load()), node)


def _slice(c: Converter, element: cst.SubscriptElement) -> ast.expr:
    node = element.slice
    if isinstance(node, cst.Slice):
        made = ast.Slice(
            lower=c.optional(node.lower), upper=c.optional(node.upper), step=c.optional(node.step)
        )
        return c.spans.place(made, _slice_start(c, element), _slice_end(c, node))
    assert isinstance(node, cst.Index)
    value: ast.expr = c.expr(node.value)
    if getattr(node, "star", None):
        starred = ast.Starred(value=value, ctx=ast.Load())
        return c.spans.place(starred, c.spans.start(node), c.spans.outer_end(node.value))
    return value


def _slice_start(c: Converter, element: cst.SubscriptElement) -> Point:
    node: Any = element.slice
    if isinstance(node, cst.Slice):
        if node.lower is None:
            return c.spans.end(node.first_colon.whitespace_before)
        return c.spans.outer_start(node.lower)
    return c.spans.start(node) if getattr(node, "star", None) else c.spans.outer_start(node.value)


def _slice_end(c: Converter, node: cst.Slice) -> Point:
    if node.step is not None:
        return c.spans.outer_end(node.step)
    if isinstance(node.second_colon, cst.Colon):
        line, column = c.spans.end(node.second_colon.whitespace_before)
        return line, column + 1
    if node.upper is not None:
        return c.spans.outer_end(node.upper)
    line, column = c.spans.end(node.first_colon.whitespace_before)
    return line, column + 1


def _element_end(c: Converter, element: cst.SubscriptElement) -> Point:
    if isinstance(element.comma, cst.Comma):
        line, column = c.spans.end(element.comma.whitespace_before)
        return line, column + 1
    node: Any = element.slice
    return _slice_end(c, node) if isinstance(node, cst.Slice) else c.spans.outer_end(node.value)


HANDLERS: dict[str, Callable[[Any, Any], ast.expr]] = {"Subscript": _subscript}
