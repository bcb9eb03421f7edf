"""Patterns of match statements: the condition under which one matches, and the names that it binds."""

from __future__ import annotations

import ast

from ..source.walking import walk
from ..values.value import FALSE, TRUE, Value, expression, retaint, symbol, union
from .attributes import read_attribute
from .comparisons import compare, logic
from .containers import container_item
from .contents import items_now, structure, version, whole
from .expressions import evaluate, text_of
from .frame import Frame
from .kinds import structural
from .protocols import fields_taint


def pattern_condition(frame: Frame, pattern: ast.pattern, subject: Value) -> Value:
    """The condition under which a pattern matches."""
    if isinstance(pattern, ast.MatchValue):
        return compare("==", subject, evaluate(frame, pattern.value))
    if isinstance(pattern, ast.MatchSingleton):
        return compare("is", subject, evaluate(frame, ast.Constant(pattern.value)))
    if isinstance(pattern, ast.MatchAs):
        return TRUE if pattern.pattern is None else pattern_condition(frame, pattern.pattern, subject)
    if isinstance(pattern, ast.MatchOr):
        return logic("or", [pattern_condition(frame, p, subject) for p in pattern.patterns])
    if isinstance(pattern, (ast.MatchSequence, ast.MatchMapping)) and subject.tag == "obj":
        return _container_condition(frame, pattern, subject)
    if isinstance(pattern, ast.MatchClass):
        return _class_condition(frame, pattern, subject)
    if isinstance(pattern, ast.MatchSequence) and subject.tag == "tuple":
        parts = _aligned(pattern, subject)
        if parts is None:
            return FALSE
        return logic("and", [TRUE, *(pattern_condition(frame, p, part) for p, part in parts)])
    return expression(f"match:{text_of(pattern)}", (subject,))


def _container_condition(
    frame: Frame, pattern: ast.MatchSequence | ast.MatchMapping, subject: Value
) -> Value:
    """A list or dict of the heap: item by item where its items are known, by all of its contents otherwise."""
    if isinstance(pattern, ast.MatchSequence):
        items = items_now(frame, subject)
        if items.tag == "tuple":
            return pattern_condition(frame, pattern, items)
        return expression(f"match:{text_of(pattern)}", (items,))
    there = symbol(("match", frame.place(pattern), version(frame, subject).key), structure(frame, subject))
    parts = [
        pattern_condition(frame, part, container_item(frame, subject, evaluate(frame, key)))
        for key, part in zip(pattern.keys, pattern.patterns, strict=True)
    ]
    return logic("and", [there, *parts])


def _class_condition(frame: Frame, pattern: ast.MatchClass, subject: Value) -> Value:
    """A class with the fields that are asked for by name; fields by position count with all of the object."""
    kind = structural(expression(f"match:{text_of(pattern.cls)}", (subject,)))
    if subject.tag == "obj" and pattern.patterns:
        kind = retaint(kind, union(kind.taint, fields_taint(frame, subject)))
    elif pattern.patterns:
        kind = expression(f"match:{text_of(pattern)}", (subject,))
    parts = [
        pattern_condition(frame, part, read_attribute(frame, subject, name, pattern))
        for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)
    ]
    return logic("and", [kind, *parts])


def _aligned(pattern: ast.MatchSequence, subject: Value) -> list[tuple[ast.pattern, Value]] | None:
    """Each part of a sequence pattern with the item that it is compared with; None where the lengths differ."""
    items, parts = list(subject.data), pattern.patterns
    star = next((i for i, part in enumerate(parts) if isinstance(part, ast.MatchStar)), None)
    if star is None:
        return list(zip(parts, items, strict=True)) if len(parts) == len(items) else None
    if len(items) < len(parts) - 1:
        return None
    behind = len(parts) - star - 1
    return [
        *zip(parts[:star], items, strict=False),
        *zip(parts[star + 1 :], items[len(items) - behind :], strict=True),
    ]


def bind_pattern(frame: Frame, pattern: ast.pattern, subject: Value) -> None:
    """Bind the names that a pattern captures."""
    if frame.state is None:
        return
    if isinstance(pattern, ast.MatchSequence) and subject.tag == "tuple":
        for inner, item in _aligned(pattern, subject) or ():
            bind_pattern(frame, inner, item)
        for star in pattern.patterns:
            if isinstance(star, ast.MatchStar) and star.name:
                frame.state.variables[star.name] = expression("slice", (subject,))
        return
    contents = whole(frame, subject)
    for part in walk(pattern):
        name = getattr(part, "name", None) or getattr(part, "rest", None)
        if isinstance(name, str):
            alone = part is pattern and isinstance(pattern, ast.MatchAs)
            value = subject if alone else symbol(("captured", frame.place(pattern), name), contents.taint)
            frame.state.variables[name] = value
