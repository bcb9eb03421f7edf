"""Searches: a library evaluates a function as often as the values that it gives ask for."""

from __future__ import annotations

import ast

from ..traces.nodes import Loop
from ..values.value import Value, symbol
from .expressions import text_of
from .frame import Frame
from .state import join

_CALLABLE = frozenset({"func", "wrapped", "bound", "partial"})


def search(frame: Frame, function: Value | None, node: ast.AST) -> None:
    """``optimizer.step(closure)`` of L-BFGS, ``scipy.optimize.minimize(f, x)``: a loop of calls.

    Where the values are this rank's own, ranks make another number of calls.
    """
    from .calls import call_value

    if function is None or function.tag not in _CALLABLE or frame.state is None:
        return
    place = frame.place(node)
    before = frame.state.copy()
    given = (
        []
        if isinstance(node, ast.Call) and text_of(node.func).endswith(".step")
        else [symbol(("tried", place))]
    )
    with frame.collecting() as nodes:
        value = call_value(frame, function, given, {}, node)
    rounds = frozenset(
        t._replace(certainty="likely") for t in value.taint if t.kind not in ("synced", "order")
    )
    frame.state = join(frame.state, before, symbol(("searched", place)))
    if nodes:
        frame.out.append(Loop(place, nodes, [], rounds, "search", text_of(node)))
