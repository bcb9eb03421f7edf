"""What a test says of the class of a value: below ``isinstance(optimizer, ZeroRedundancyOptimizer)`` it is one.

Terminology: an expression is *narrowed* in a frame when a test that holds there has told its class. Only classes of
libraries count whose methods communicate, and only values of which nothing is known otherwise. An expression that has
another value by then is no longer the one that was asked about.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts import lookup as facts
from ..values.value import Value
from .frame import Frame

_OPAQUE = frozenset({"sym", "expr"})


def knowing(frame: Frame, test: ast.expr, body: Callable[[], None]) -> Callable[[], None]:
    """A block that runs where a test holds, with what the test tells of classes."""
    told = list(_told(frame, test))
    if not told:
        return body

    def run() -> None:
        before = frame.narrowed
        frame.narrowed = {**before, **dict(told)}
        body()
        frame.narrowed = before

    return run


def know_from_here(frame: Frame, test: ast.expr) -> None:
    """What is known in the rest of a block once ``if not isinstance(x, C): return`` was passed."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        told = dict(_told(frame, test.operand))
        frame.narrowed = {**frame.narrowed, **told} if told else frame.narrowed


def narrowed(frame: Frame, node: ast.Name | ast.Attribute, value: Value) -> Value:
    """The value of an expression, as an instance of the class that a test has told."""
    from .expressions import text_of

    known = frame.narrowed.get(text_of(node))
    if known is None or known[0] != value.key or value.tag not in _OPAQUE:
        return value
    return Value("extobj", (known[1], value.key, None), value.taint)


def _told(frame: Frame, test: ast.expr) -> Iterator[tuple[str, tuple[object, str]]]:
    """The expressions whose class a test tells, each with the key of its value and the class."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for one in test.values:
            yield from _told(frame, one)
        return
    if not isinstance(test, ast.Call) or len(test.args) != 2 or test.keywords:
        return
    subject, asked = test.args
    if getattr(test.func, "id", "") != "isinstance" or not isinstance(subject, (ast.Name, ast.Attribute)):
        return
    type_name = _communicating(frame, asked)
    if type_name is None:
        return
    from .expressions import evaluate, text_of

    with frame.collecting():
        value = evaluate(frame, subject)
    if value.tag in _OPAQUE:
        yield text_of(subject), (value.key, type_name)


def _communicating(frame: Frame, asked: ast.expr) -> str | None:
    """The type of a library that an expression names, if some of its methods communicate."""
    if not isinstance(asked, (ast.Name, ast.Attribute)):
        return None
    from .expressions import evaluate

    with frame.collecting():
        named = evaluate(frame, asked)
    type_name = facts.constructor(named.data[0]) if named.tag == "ext" else None
    return type_name if type_name is not None and facts.communicates(type_name) else None
