"""Functions that are handed to a library: it runs them apart from here, later, or as often as it needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts.fact import Arg
from ..traces.nodes import Branch, Event, Fallible, Region
from ..values.value import FALSE, NONE, TRUE, Value, expression, symbol
from .expressions import text_of
from .facts_apply import GROUP
from .facts_values import argument, main_predicate
from .frame import Frame
from .kept import result_or_default
from .searches import search
from .signals import install
from .state import join
from .threads import at_exit, drain, made
from .waited import kind_of_thread

if TYPE_CHECKING:
    from ..facts.fact import Fact

_CALLABLE = frozenset({"func", "wrapped", "ext", "bound", "partial", "ite", "obj", "class"})


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


def call_through(
    frame: Frame, fact: Fact, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A function argument is run: at once, deferred, in a thread, on the main rank only."""
    from .calls import call_value

    if fact.afterwards:
        return _whole_run(frame, fact, args, kwargs, node)
    function = args[0] if args else kwargs.pop("fn", kwargs.pop("function", NONE))
    rest = args[1:]
    with frame.collecting() as nodes:
        if function.tag in _CALLABLE:
            before = frame.state.copy() if frame.state is not None else None
            result = call_value(frame, function, rest, dict(kwargs), node)
            if frame.state is None:
                frame.state = before
        else:
            frame.out.append(Fallible(frame.place(node), text_of(node), True))
            drain(frame, rest, node)
            result = expression("call", [function, *rest])
    kind = "deferred" if fact.event.startswith("defer") else "call"
    kind = kind_of_thread(frame, nodes, node) if fact.event == "thread-run" else kind
    text = text_of(node)
    if fact.main_only:
        condition = main_predicate(frame, fact.main_only, node, text)
        frame.out.append(Branch(frame.place(node), condition, nodes, [], "decorator", text))
    elif kind == "call":
        frame.out.extend(nodes)
    else:
        frame.out.append(Region(frame.place(node), kind, nodes, text))
    return result_or_default(frame, result, nodes, NONE, frame.place(node)) if kind == "deferred" else result


def _whole_run(frame: Frame, fact: Fact, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    """``run(train, post_train=f)``: the training, the end of the group, then ``f`` on the main rank alone."""
    from .calls import call_value

    frame.out.append(Event(frame.place(node), fact.event, text_of(node)))
    function = args[0] if args else kwargs.get("train", NONE)
    result = symbol(("run", frame.place(node)))
    if function.tag in _CALLABLE:
        before = frame.live.copy()
        result = call_value(frame, function, [], {}, node)
        frame.state = frame.state or before
        frame.out.append(Event(frame.place(node), "run-agrees", text_of(node)))
        frame.state.set_field(GROUP, "initialized", symbol(("run", "after destroy")))
    run_afterwards(frame, kwargs.get(fact.afterwards, NONE), fact.afterwards, node)
    return result


def run_afterwards(frame: Frame, function: Value, name: str, node: ast.AST) -> None:
    """Run what an option of this name gives to the main rank alone."""
    from .calls import call_value

    if function.tag not in _CALLABLE or frame.state is None:
        return
    condition = main_predicate(frame, "main", node, name)
    before = frame.state.copy()
    frame.state.set_field(GROUP, "initialized", FALSE)
    with frame.collecting() as nodes:
        call_value(frame, function, [], {}, node)
    frame.state = join(frame.state, before, condition)
    frame.live.set_field(GROUP, "initialized", before.field(GROUP, "initialized") or TRUE)
    if nodes:
        frame.out.append(Branch(frame.place(node), condition, nodes, [], "decorator", name))
