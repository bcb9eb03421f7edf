"""What becomes of functions under ``@rank_local`` where they raise: the error is kept.

A generator then ends early, and a function gives its default (None), on that rank alone.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from ..traces.nodes import Fallible, Loop, Region, Tree, Try, Yielded, every_node
from ..values.value import NONE, Place, Taint, Taints, Value, alternatives, choice, constant, symbol, union

_REFERENCES = frozenset(
    {"obj", "extobj", "func", "class", "generator", "coroutine", "manager", "wrapped", "bound"}
)


def result_or_default(result: Value, nodes: Tree, text: str, place: Place) -> Value:
    """What a function under ``@rank_local`` gives: its result, or the default where one of its files failed.

    Objects are left as they are: what is asked of None ends this rank at once.
    """
    why = _why(nodes)
    if not why or any(one.tag in _REFERENCES for one in alternatives(result)):
        return result
    return choice(symbol(("failed", place), why), default_of(text), result)


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
