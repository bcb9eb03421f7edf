"""Exit stacks: what they take over runs at the end of their block, and is read where it is handed to them."""

from __future__ import annotations

import ast

from ..values.value import NONE, Value
from .attributes import read_attribute
from .frame import Frame

EXIT_STACK = frozenset({"enter-context", "exit-stack-callback", "exit-stack-push"})


def on_exit_stack(
    frame: Frame, event: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A context manager, an exit function or a function that an exit stack takes over."""
    from .calls import call_value

    if event == "exit-stack-callback":
        call_value(frame, args[0], args[1:], dict(kwargs), node)
        return args[0]
    if event == "exit-stack-push":
        taken = args[0]
        leave = read_attribute(frame, taken, "__exit__", node) if taken.tag == "obj" else taken
        call_value(frame, leave, [NONE, NONE, NONE], {}, node)  # as when the block raises nothing
        return taken
    from .withs import enter_manager

    entered: list[Value] = []
    if isinstance(node, ast.expr):
        enter_manager(frame, args[0], node, entered.append)
    return entered[0] if entered else args[0]
