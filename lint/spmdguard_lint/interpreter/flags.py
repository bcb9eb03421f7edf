"""Flags by which a callback asks the trainer for something that all ranks do: to stop, to save, to evaluate.

The trainer acts on the flag at its next step, without asking the other ranks. So setting one is an operation
that all ranks make together, of kind "request": it takes part in traces under its name and value, but nobody
waits in it. A value that differs between ranks is the same as setting the flag under that condition.
"""

from __future__ import annotations

import ast

from ..facts import lookup as facts
from ..traces.nodes import Branch, Event, Op, Tree
from ..values.value import Value, is_const
from .frame import Frame

MEETING = frozenset({"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"})
_FLAGS = ("stop-flag", "request-flag")


def set_flag(frame: Frame, receiver: Value, name: str, value: Value, node: ast.AST) -> None:
    """``receiver.name = value`` for an object of a library."""
    from .expressions import text_of

    fact = facts.attribute(receiver.data[0], name)
    if fact is None or fact.event not in _FLAGS:
        return
    place = frame.place(node)
    target = text_of(node)
    if is_const(value):
        said = bool(value.data[0])
        frame.out.append(_request(frame, name, said, f"{target} = {value.data[0]}", node))
    elif value.taint:
        request = _request(frame, name, True, f"{target} = ...", node)
        frame.out.append(Branch(place, value, [request], [], "if", f"{target} becomes true"))
    elif agreed_now(frame):
        forget(frame.out, name)


def agreed_now(frame: Frame) -> bool:
    """Whether a collective stands before the assignment in its block: what is assigned has been shared."""
    return any(isinstance(node, Op) and node.kind == "collective" for node in frame.out)


def forget(nodes: Tree, name: str) -> None:
    """Take earlier requests of a flag out of a block: what the ranks have agreed on replaces them."""
    for node in nodes:
        for child in node.subtrees():
            forget(child, name)
    nodes[:] = [node for node in nodes if not (isinstance(node, Op) and _asks_for(node, name))]


def set_variable(frame: Frame, name: Value, value: Value, node: ast.AST) -> None:
    """``os.environ[name] = value``: kept in the trace for the variables by which processes find each other."""
    from .expressions import text_of

    if is_const(name) and name.data[0] in MEETING:
        text = text_of(node)
        frame.out.append(Event(frame.place(node), "set-env", text, (name, value)))


def _asks_for(op: Op, name: str) -> bool:
    return op.kind == "request" and op.name.startswith(f"{name} = ")


def _request(frame: Frame, name: str, said: bool, text: str, node: ast.AST) -> Op:
    return Op(frame.place(node), f"{name} = {said}", "request", None, text)
