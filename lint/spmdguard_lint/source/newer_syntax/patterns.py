"""Patterns of ``match`` statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from .expressions import identifier

if TYPE_CHECKING:
    from .converter import Converter


def _value(c: Converter, node: cst.MatchValue) -> ast.pattern:
    return c.at(ast.MatchValue(value=c.expr(node.value)), node.value)


def _singleton(c: Converter, node: cst.MatchSingleton) -> ast.pattern:
    constant = c.expr(node.value)
    return c.at(ast.MatchSingleton(value=constant.value), node.value)


def _star(c: Converter, node: cst.MatchStar) -> ast.pattern:
    made = ast.MatchStar(name=_captured(node.name))
    if node.name is not None:
        return c.spans.place(made, c.spans.start(node), c.spans.end(node.name))
    line, column = c.spans.end(node.whitespace_before_name)
    return c.spans.place(made, c.spans.start(node), (line, column + 1))


def _captured(name: cst.Name | None) -> str | None:
    return None if name is None or name.value == "_" else identifier(name)


def _sequence(c: Converter, node: Any) -> ast.pattern:
    made = ast.MatchSequence(patterns=[_element(c, element) for element in node.patterns])
    if isinstance(node, cst.MatchTuple) and node.lpar:
        return c.spans.place(made, c.spans.start(node.lpar[-1]), c.spans.end(node.rpar[0]))
    if getattr(node, "lbracket", None) is not None:
        return c.at(made, node)
    return c.spans.place(made, c.spans.start(node), c.spans.comma_end(node.patterns[-1]))


def _element(c: Converter, element: Any) -> Any:
    return c.pattern(element if isinstance(element, cst.MatchStar) else element.value)


def _mapping(c: Converter, node: cst.MatchMapping) -> ast.pattern:
    made = ast.MatchMapping(
        keys=[c.expr(element.key) for element in node.elements],
        patterns=[c.pattern(element.pattern) for element in node.elements],
        rest=None if node.rest is None else identifier(node.rest),
    )
    return c.at(made, node)


def _class(c: Converter, node: cst.MatchClass) -> ast.pattern:
    made = ast.MatchClass(
        cls=c.expr(node.cls),
        patterns=[c.pattern(element.value) for element in node.patterns],
        kwd_attrs=[identifier(element.key) for element in node.kwds],
        kwd_patterns=[c.pattern(element.pattern) for element in node.kwds],
    )
    return c.at(made, node)


def _as(c: Converter, node: cst.MatchAs) -> ast.pattern:
    inner = None if node.pattern is None else c.pattern(node.pattern)
    return c.at(ast.MatchAs(pattern=inner, name=_captured(node.name)), node)


def _or(c: Converter, node: cst.MatchOr) -> ast.pattern:
    elements: Sequence[cst.MatchOrElement] = node.patterns
    return c.at(ast.MatchOr(patterns=[c.pattern(element.pattern) for element in elements]), node)


HANDLERS: dict[str, Callable[[Any, Any], ast.pattern]] = {
    "MatchValue": _value,
    "MatchSingleton": _singleton,
    "MatchStar": _star,
    "MatchList": _sequence,
    "MatchTuple": _sequence,
    "MatchMapping": _mapping,
    "MatchClass": _class,
    "MatchAs": _as,
    "MatchOr": _or,
}
