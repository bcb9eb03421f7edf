"""Which nodes a walk may pass by: nothing in them concerns it, and every path through them comes out behind them.

Cost: one visit per node.
"""

from __future__ import annotations

from collections.abc import Callable

from .nodes import APART, Fallible, Jump, Loop, Node, Region, Tree, Try, outside

Ways = frozenset[str]
_STRAIGHT: Ways = frozenset()


def passed_by(tree: Tree, concerns: Callable[[Node], bool]) -> set[Node]:
    """The outermost nodes in which no node concerns the walk and no jump leads out."""
    found: set[Node] = set()
    _tree(tree, concerns, False, found)
    return found


def _tree(tree: Tree, concerns: Callable[[Node], bool], caught: bool, found: set[Node]) -> Ways | None:
    """The jumps that lead out of a tree; None where some node in it concerns the walk."""
    ways: Ways | None = _STRAIGHT
    for node in tree:
        inside: set[Node] = set()
        leads = _node(node, concerns, caught, inside)
        if leads == _STRAIGHT:
            found.add(node)
        else:
            found |= inside
        ways = None if ways is None or leads is None else ways | leads
    return ways


def _node(node: Node, concerns: Callable[[Node], bool], caught: bool, found: set[Node]) -> Ways | None:
    if isinstance(node, Region) and node.kind in APART:
        return _STRAIGHT
    if isinstance(node, Jump):
        return frozenset({node.kind})
    caught = caught or isinstance(node, Try) or (isinstance(node, Region) and node.kind == "deferred")
    mine = [_tree(child, concerns, caught, found) for child in node.subtrees()]
    if concerns(node) or (caught and isinstance(node, Fallible)):
        return None
    ways: set[str] = set()
    for child, leads in zip(node.subtrees(), mine, strict=True):
        if leads is None:
            return None
        if isinstance(node, Loop) and child is node.body:
            if node.form == "while" and not leads & {"break", "end"}:
                return None
            leads = leads - {"end"}
        ways |= outside(node, child, leads)
    return frozenset(ways)
