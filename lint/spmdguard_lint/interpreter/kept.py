"""What becomes of functions under ``@rank_local`` where they raise: the error is kept.

A generator then ends early, and a function gives its default (None), on that rank alone.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from ..traces.nodes import Fallible, Loop, Region, Tree, Try, Yielded, every_node
from ..values.value import (
    NONE,
    Place,
    Taint,
    Taints,
    Value,
    alternatives,
    choice,
    constant,
    is_const,
    retaint,
    symbol,
    union,
)
from .frame import Frame

_REFERENCES = frozenset(
    {"obj", "extobj", "func", "class", "generator", "coroutine", "manager", "wrapped", "bound"}
)


_FAILED = "failed"


def result_or_default(frame: Frame, result: Value, nodes: Tree, default: Value, place: Place) -> Value:
    """What work whose errors are kept gives: its result, or the default where one of its files failed.

    Objects of classes are left as they are: what is asked of None ends this rank at once.
    """
    why = _why(nodes)
    references = [one for one in alternatives(result) if one.tag in _REFERENCES]
    if not why or not all(map(_is_built_in, references)):
        return result
    failed = symbol((_FAILED, place), why)
    frame.machine.failed[failed.key] = why
    return choice(failed, default, result)


def present(value: Value) -> Value:
    """A value of which something is asked that None has not: it is there, or this rank ends."""
    while (
        value.tag == "ite"
        and _is_failure(value.data[0])
        and is_const(value.data[1])
        and value.data[1].key == NONE.key
    ):
        value = value.data[2]
    return value


def agree_on_failures(frame: Frame, name: str, given: list[Value]) -> None:
    """What has failed is known to all ranks once they have told one another: from here on they decide alike."""
    failed = frame.machine.failed
    if not failed or frame.state is None:
        return
    told = union(*failed.values())
    if name != "sync_should_stop":
        if not any(value.taint and all(t.kind == "exception" for t in value.taint) for value in given):
            return
        asked = union(*(value.taint for value in given))
        told = told if any("deferred_error(" in t.text for t in asked) else asked & told
    here: Frame | None = frame
    while here is not None and told:
        if here.state is not None:
            _settle(here.state.variables, told)
        here = here.caller
    for object_id, fields in list(frame.state.heap.items()):
        if any(not told.isdisjoint(value.taint) for value in fields.values()):
            frame.state.heap[object_id] = dict(fields)
            _settle(frame.state.heap[object_id], told)


def _settle(named: dict[str, Value], told: Taints) -> None:
    for name, value in named.items():
        while value.tag == "ite" and _is_failure(value.data[0]) and value.data[0].taint <= told:
            value = value.data[2]
        if not told.isdisjoint(value.taint):
            value = retaint(value, value.taint - told, None if value.trip is None else value.trip - told)
        named[name] = value


def _is_failure(condition: Value) -> bool:
    label = condition.data[0] if condition.tag == "sym" else None
    return isinstance(label, tuple) and label[:1] == (_FAILED,)


def _is_built_in(value: Value) -> bool:
    """Whether an object is a list, dict or set: such results are tested for being there, and replaced by empty ones."""
    made = value.data[0] if value.tag == "obj" else None
    return isinstance(made, tuple) and made[:1] in (("list",), ("dict",), ("set",))


def default_of(text: str) -> Value:
    """What a decorator like ``@rank_local(default=0)`` puts in place of a result that is missing."""
    default = _default_in(text)
    if default is None:
        return NONE
    return constant(default.value) if isinstance(default, ast.Constant) else symbol(("default", text))


@lru_cache(maxsize=256)
def _default_in(text: str) -> ast.AST | None:
    """The expression that a decorator has for ``default``; any other node where the text is shown cut short."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        return ast.Pass()
    keywords = call.keywords if isinstance(call, ast.Call) else []
    return next((keyword.value for keyword in keywords if keyword.arg == "default"), None)


def ends_early(nodes: Tree, text: str) -> Tree:
    """The tree of a generator whose own exceptions are kept: its loops have fewer rounds where something fails."""
    return _kept(nodes, text, _why(nodes))


def _why(nodes: Tree) -> Taints:
    """Why it may end early: the files that it reads itself, not what its consumer does at each yield."""
    faults = [node for node in _own(nodes) if isinstance(node, Fallible) and (node.io or node.own)]
    return frozenset(Taint("exception", node.place, node.text, "likely") for node in faults[:1])


def _own(nodes: Tree) -> Tree:
    found: Tree = []
    for node in nodes:
        found.append(node)
        handled = isinstance(node, Try) and node.handlers
        if not isinstance(node, Yielded) and not handled:
            found.extend(inner for child in node.subtrees() for inner in _own(child))
    return found


def _kept(nodes: Tree, text: str, why: Taints) -> Tree:
    result: Tree = []
    for node in nodes:
        yields = any(isinstance(inner, Yielded) for inner in every_node([node]))
        if not yields:
            result.append(Region(node.place, "deferred", [node], text))
            continue
        if not isinstance(node, Yielded):
            if isinstance(node, Loop):
                node.trip = union(node.trip, why)
            for child in node.subtrees():
                child[:] = _kept(child, text, why)
        result.append(node)
    return result
