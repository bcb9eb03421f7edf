"""Coroutines that run at the same time: ``asyncio.gather``, tasks, and what they await before they communicate.

Terminology: coroutines that are *gathered* take turns: each runs up to an ``await`` of something outside of the
project, and goes on when that has come. What they do is read in the order in which they are written down.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..traces.nodes import Call, Event, Loop, Node, Region
from ..values.value import NONE, Value, symbol
from .expressions import text_of
from .frame import Frame
from .lazily import run_coroutine

GATHERED, TASK, AWAITS = "gathered", "task", "await"  # two kinds of regions, and an event
Maker = Callable[[Frame, str, list[Value], dict[str, Value], ast.AST], Value]


def _run(frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    return run_coroutine(frame, args[0], node) if args else NONE


def as_task(frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    """``create_task(f(x))``: from now on ``f(x)`` may run."""
    if not frame.module.contains(b"async def"):
        return symbol(("task", frame.place(node)))
    result, nodes = _handed(frame, args[:1], node)
    if nodes:
        frame.out.append(Region(frame.place(node), TASK, nodes, text_of(node)))
    return result[0] if result else NONE


def _gather(frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    """``asyncio.gather(f(x), g(y))``: both run until both have ended; gives what they give."""
    from .expressions import tuple_value

    results, nodes = _handed(frame, args, node)
    if nodes:
        frame.out.append(Region(frame.place(node), GATHERED, nodes, text_of(node)))
    stars = isinstance(node, ast.Call) and any(isinstance(arg, ast.Starred) for arg in node.args)
    return symbol(("gathered", frame.place(node))) if stars else tuple_value(results)


def _handed(frame: Frame, args: list[Value], node: ast.AST) -> tuple[list[Value], list[Node]]:
    """The results of coroutines that are handed over, and what they do, taken out of what was read so far."""
    written = node.args if isinstance(node, ast.Call) else []
    places = {frame.place(arg.value if isinstance(arg, ast.Starred) else arg) for arg in written}
    own = [one for one in frame.out if isinstance(one, (Call, Loop)) and one.place in places]
    frame.out[:] = [one for one in frame.out if not any(one is moved for moved in own)]
    with frame.collecting() as later:
        results = [run_coroutine(frame, arg, node) for arg in args]
    return results, [*own, *later]


def awaited(frame: Frame, node: ast.Await) -> None:
    """Mark an ``await`` of something outside of the project; a coroutine of the project was read instead."""
    place = frame.place(node.value)
    last = frame.out[-1] if frame.out else None
    if isinstance(last, Region) and last.kind == TASK and last.place == place:
        last.kind = "awaited"  # the task is awaited where it is made
    elif not (
        isinstance(last, (Call, Region)) and last.place == place and getattr(last, "kind", "") != "awaited"
    ):
        frame.out.append(Event(frame.place(node), AWAITS, text_of(node)))


ASYNCIO: dict[str, Maker] = {
    "asyncio.run": _run,
    "asyncio.wait_for": _run,
    "asyncio.create_task": as_task,
    "asyncio.ensure_future": as_task,
    "asyncio.gather": _gather,
}
