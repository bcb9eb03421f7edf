"""Method resolution order, safe on any graph.

C3 (Barrett et al. 1996; https://docs.python.org/3/howto/mro.html), computed bottom-up with an explicit
stack; where it has no answer, or the bases form a cycle, depth-first order with each class once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def linearise(start: Node, bases: Callable[[Node], Sequence[Node]]) -> list[Node]:
    """``start`` and its ancestors in lookup order."""
    order = _depth_first(start, bases)
    if all(len(bases(node)) <= 1 for node in order):
        return order
    done: dict[Node, list[Node]] = {}
    for node in _children_last(start, bases):
        parents = [p for p in dict.fromkeys(bases(node)) if p in done]
        merged = _merge([list(done[p]) for p in parents] + [list(parents)])
        if merged is None or len(parents) < len(dict.fromkeys(bases(node))):
            return order
        done[node] = [node, *merged]
    return done[start]


def _depth_first(start: Node, bases: Callable[[Node], Sequence[Node]]) -> list[Node]:
    seen: dict[Node, None] = {}
    stack = [start]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack.extend(reversed(bases(node)))
    return list(seen)


def _children_last(start: Node, bases: Callable[[Node], Sequence[Node]]) -> list[Node]:
    """Post-order: every base before the classes that derive from it (cycles are cut)."""
    order: list[Node] = []
    seen = {start}
    stack = [(start, iter(bases(start)))]
    while stack:
        node, rest = stack[-1]
        child = next(rest, None)
        if child is None:
            order.append(node)
            stack.pop()
        elif child not in seen:
            seen.add(child)
            stack.append((child, iter(bases(child))))
    return order


def _merge(sequences: list[list[Node]]) -> list[Node] | None:
    result: list[Node] = []
    while True:
        sequences = [s for s in sequences if s]
        if not sequences:
            return result
        tails = {node for s in sequences for node in s[1:]}
        head = next((s[0] for s in sequences if s[0] not in tails), None)
        if head is None:
            return None
        result.append(head)
        for s in sequences:
            if s[0] == head:
                del s[0]
