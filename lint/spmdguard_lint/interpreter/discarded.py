"""Context managers that a statement makes and throws away: what they do when entered never happens."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..traces.nodes import Event
from ..values.value import Value
from .expressions import text_of
from .frame import Frame

if TYPE_CHECKING:
    from ..facts.fact import Fact

EVENT = "manager-not-entered"
_TELLING = frozenset({"main-first", "no-sync", "join", "split", "coalesce"})


def note_discarded(frame: Frame, value: Value, node: ast.Expr) -> None:
    """Leave an event where a statement makes a context manager that matters to other ranks."""
    if frame.state is not None and isinstance(node.value, ast.Call) and _matters(frame, value):
        frame.out.append(Event(frame.place(node.value), EVENT, text_of(node.value), (value,)))


def _matters(frame: Frame, value: Value) -> bool:
    """Whether entering a manager communicates, waits as the rank decides, or changes what is exchanged."""
    if value.tag == "context":
        fact: Fact = value.data[1]
        return fact.op is not None or fact.event in _TELLING
    function = value.data[0] if value.tag == "manager" else None
    if function is None or function.tag != "func":
        return False
    reach = frame.machine.reach
    return reach.reaches(function.data[0]) or reach.is_rank_helper(function.data[0])
