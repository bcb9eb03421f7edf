"""Generators under ``@rank_local``: where they raise, the error is kept, and they end early on that rank alone."""

from __future__ import annotations

from ..traces.nodes import Fallible, Loop, Region, Tree, Try, Yielded, every_node
from ..values.value import Taint, Taints, union


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
