"""What runs apart from its maker's order is read where it is made.

So it is with threads, with what runs when the interpreter or an object ends, and with what the worker processes of
a data loader run.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..traces.nodes import Region
from ..values.value import NONE, Value, is_const, symbol
from .expressions import text_of
from .frame import Frame
from .waited import kind_of_thread

if TYPE_CHECKING:
    from ..facts.fact import Arg
    from ..names.classes import ClassInfo

_CALLABLE = frozenset({"func", "wrapped", "bound", "partial", "ite"})
_THREAD = "threading.Thread"
_READING = ("__getitem__", "__getitems__", "__iter__")
_LOADER = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
    "timeout",
    "worker_init_fn",
)


def made(frame: Frame, callee: Arg, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """``Thread(target=f, args=(x,))``: from now on ``f(x)`` may run."""
    target = kwargs.get(callee.keyword) or (args[callee.index] if len(args) > callee.index else NONE)
    given = kwargs.get("args", NONE)
    positional = list(given.data) if given.tag == "tuple" else []
    run(frame, target, positional, node)
    if target.tag not in _CALLABLE:
        with frame.collecting() as nodes:
            drain(frame, positional, node)
        if nodes:
            frame.out.append(Region(frame.place(node), "thread", nodes, text_of(node)))


def drain(frame: Frame, given: list[Value], node: ast.AST) -> None:
    """Generators that a function which is not known gets are run where it runs; the state here does not change."""
    from .loops import consume

    for value in given:
        if value.tag == "generator" and frame.state is not None:
            before = frame.state.copy()
            consume(frame, node, value, lambda _value: None, text_of(node))
            frame.state = before


def started(frame: Frame, cls: ClassInfo, receiver: Value, name: str, node: ast.AST) -> bool:
    """``worker.start()`` of a project's own thread class runs its ``run``; tells whether it was that."""
    method = cls.find_method("run") if name == "start" else None
    if method is None or not any(facts.canonical(base) == _THREAD for base in cls.external_bases()):
        return False
    from .attributes import bound_method

    run(frame, bound_method(frame, method, receiver), [], node)
    return True


def at_exit(frame: Frame, callee: Arg, args: list[Value], node: ast.AST) -> None:
    """``atexit.register(f, x)``: ``f(x)`` runs when this process ends, however it ends."""
    if len(args) > callee.index:
        run(frame, args[callee.index], args[callee.index + 1 :], node, "exit")


def in_workers(frame: Frame, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """``DataLoader(data, num_workers=2, worker_init_fn=f)``: other processes run ``f`` and read the items."""
    given = {**dict(zip(_LOADER, args, strict=False)), **kwargs}
    count = given.get("num_workers")
    if count is None or (is_const(count) and not count.data[0]):
        return
    for name in ("worker_init_fn", "collate_fn"):
        function = given.get(name, NONE)
        run(frame, function, [symbol(("worker", frame.place(node)))], node, "worker")
    data = _innermost(given.get("dataset", NONE))
    cls = frame.machine.objects.info(data).cls if data.tag == "obj" else None
    for name in _READING:
        method = cls.find_method(name) if cls is not None else None
        if method is not None:
            from .attributes import bound_method

            index = [] if name == "__iter__" else [symbol(("item", frame.place(node)))]
            run(frame, bound_method(frame, method, data), index, node, "worker")


def _innermost(data: Value) -> Value:
    """The data set that others of the library select from (``Subset(data, indices)``)."""
    while True:
        if data.tag == "extobj" and isinstance(data.data[2], Value):
            data = data.data[2]
        elif data.tag == "expr" and ".utils.data." in data.data[0] and data.data[1]:
            data = data.data[1][0]
        else:
            return data


def run(frame: Frame, target: Value, args: list[Value], node: ast.AST, kind: str = "thread") -> None:
    """Read a function that runs apart from here; the state here does not change."""
    from .calls import call_value
    from .loops import consume

    if target.tag not in _CALLABLE or frame.state is None:
        return
    before = frame.state.copy()
    with frame.collecting() as nodes:
        made = call_value(frame, target, args, {}, node)
        if made.tag == "generator" and frame.state is not None:
            consume(frame, node, made, lambda _value: None, text_of(node))
    frame.state = before
    if nodes:
        kind = kind_of_thread(frame, nodes, node) if kind == "thread" else kind
        frame.out.append(Region(frame.place(node), kind, nodes, text_of(node)))
