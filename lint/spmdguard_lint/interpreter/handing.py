"""Functions that are handed to a library: it runs them apart from here, later, or as often as it needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts.fact import Arg
from ..values.value import Value
from .expressions import text_of
from .facts_values import argument
from .frame import Frame
from .searches import search
from .signals import install
from .threads import at_exit, made

if TYPE_CHECKING:
    from ..facts.fact import Fact


def hand_over(frame: Frame, fact: Fact, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """Read the function that a known call takes, the way the call runs it."""
    if fact.wraps == "thread" and fact.callee is not None:
        made(frame, fact.callee, args, kwargs, node)
    elif fact.wraps == "search":
        search(frame, argument(fact.callee, args, kwargs), node)
    elif fact.event == "exit-handler":
        at_exit(frame, fact.callee or Arg(0, "func"), args, node)
    elif fact.event == "signal-handler":
        handler = argument(fact.callee, args, kwargs)
        if handler is not None:
            install(frame, handler, node, text_of(node))
