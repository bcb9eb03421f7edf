"""Threads: what a new thread runs is read where it is made, apart from its maker's order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..traces.nodes import Region
from ..values.value import NONE, Value
from .expressions import text_of
from .frame import Frame

if TYPE_CHECKING:
    from ..facts.fact import Arg
    from ..names.classes import ClassInfo

_CALLABLE = frozenset({"func", "wrapped", "bound", "partial", "ite"})
_THREAD = "threading.Thread"


def made(frame: Frame, callee: Arg, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """``Thread(target=f, args=(x,))``: from now on ``f(x)`` may run."""
    target = kwargs.get(callee.keyword) or (args[callee.index] if len(args) > callee.index else NONE)
    given = kwargs.get("args", NONE)
    positional = list(given.data) if given.tag == "tuple" else []
    run(frame, target, positional, node)


def started(frame: Frame, cls: ClassInfo, receiver: Value, name: str, node: ast.AST) -> bool:
    """``worker.start()`` of a project's own thread class runs its ``run``; tells whether it was that."""
    method = cls.find_method("run") if name == "start" else None
    if method is None or not any(facts.canonical(base) == _THREAD for base in cls.external_bases()):
        return False
    from .attributes import bound_method

    run(frame, bound_method(frame, method, receiver), [], node)
    return True


def run(frame: Frame, target: Value, args: list[Value], node: ast.AST) -> None:
    """Read a function that runs in another thread; the state here does not change."""
    from .calls import call_value

    if target.tag not in _CALLABLE or frame.state is None:
        return
    before = frame.state.copy()
    with frame.collecting() as nodes:
        call_value(frame, target, args, {}, node)
    frame.state = before
    if nodes:
        frame.out.append(Region(frame.place(node), "thread", nodes, text_of(node)))
