"""Apply a fact: leave its nodes in the trace, reset or taint its arguments, and make its result."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..traces.judged import is_default_group
from ..traces.nodes import Branch, Event, Fallible, Jump, Loop, Op
from ..values.value import (
    NO_TAINT,
    NONE,
    TRUE,
    Taint,
    Value,
    choice,
    constant,
    expression,
    external,
    is_const,
    retaint,
    symbol,
    told,
    union,
)
from .agreed import carry
from .contents import whole, with_length
from .expressions import text_of
from .facts_values import (
    GROUP_TYPE,
    argument,
    as_many_as_asked,
    certainty_of,
    dtype_given,
    made_from,
    seed,
    skipping,
    varying_value,
    wrapped_arguments,
)
from .frame import Frame
from .gathered import note_gathered
from .kept import agree_on_failures
from .limits import note_told
from .metric_states import declare_state
from .operands import describe, mark_aliases
from .orders import order_at
from .own_groups import group_of, note_group
from .reduced import note_own, own_norm
from .stacks import EXIT_STACK, on_exit_stack
from .summed import note_summed
from .told import sent_keys

if TYPE_CHECKING:
    from ..facts.fact import Arg, Fact


GROUP = "the default process group"
_ASKED_FOR = frozenset({GROUP_TYPE, "torch.distributed.DeviceMesh"})


def argument_node(which: Arg, node: ast.AST | None) -> ast.expr | None:
    """The expression passed for an argument, or None."""
    if not isinstance(node, ast.Call):
        return None
    for keyword in node.keywords:
        if keyword.arg == which.keyword:
            return keyword.value
    if 0 <= which.index < len(node.args) and not any(
        isinstance(a, ast.Starred) for a in node.args[: which.index + 1]
    ):
        return node.args[which.index]
    return None


def apply_fact(
    frame: Frame,
    fact: Fact,
    name: str,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value:
    """Everything that calling a known function does."""
    place = frame.place(node)
    text = text_of(node)
    if fact.wraps == "call":
        from .handing import call_through

        return call_through(frame, fact, args, kwargs, node)
    if (
        fact.wraps in ("decorator",)
        and fact.main_only
        and args
        and args[0].tag in ("func", "wrapped", "bound")
    ):
        return Value("wrapped", (f"main-only:{fact.main_only}", args[0], text))
    if fact.event in EXIT_STACK and args:
        return on_exit_stack(frame, fact.event, args, kwargs, node)
    event = Event(place, fact.event, text, tuple(args), call=name, receiver=receiver, keywords=kwargs)
    if fact.event in ("sync-choice", "no-sync"):
        _choose_sync(frame, fact, args, kwargs, node, text)
    if fact.wraps == "context":
        if fact.raises_local and not fact.suppresses:
            frame.out.append(event)
            frame.out.append(Fallible(place, text, True))
        if fact.retypes is not None:
            _retype(frame, fact, args, kwargs, node)
        return Value("context", (name, fact, receiver, tuple(args)), NO_TAINT, None, ("context", name, place))
    if (
        fact.op is not None
        and communicates(frame, fact, receiver, args, kwargs)
        and not _is_named(node, fact.unless_named)
    ):
        _emit_op(frame, fact, name, receiver, args, kwargs, node, text)
        if fact.kind == "collective":
            agree_on_failures(frame, fact.op, [*args, *kwargs.values()])
    if fact.event:
        frame.out.append(event)
    if fact.callee is not None or fact.event == "exit-handler":
        from .handing import hand_over

        hand_over(frame, fact, args, kwargs, node)
    if fact.event.startswith("seed-"):
        seeded = seed(frame, fact, receiver, args, kwargs, node)
        if seeded is not None:
            return seeded
    if fact.event == "metric-state" and receiver is not None:
        declare_state(frame, receiver, args, kwargs)
    if fact.event == "destroy" and frame.state is not None:
        frame.state.set_field(GROUP, "initialized", symbol((name, "after destroy")))
    if fact.raises_local:
        frame.out.append(Fallible(place, text, True))
    if fact.noreturn:
        frame.out.append(Jump(place, "exit", text, "SystemExit", args[0] if args else None))
        frame.record_raise("SystemExit")
        frame.state = None
        return symbol(("never", place))
    result = result_of_fact(frame, fact, name, receiver, args, kwargs, node)
    note_gathered(frame, fact, args, result)
    note_group(frame, fact, receiver, args, kwargs, result)
    if fact.op is not None and (fact.buffers or fact.outputs):
        note_told(frame, args, kwargs, place, fact.op)
        note_summed(frame, fact.op, args, kwargs, place, text)
    if frame.state is not None:
        _write_buffers(frame, fact, name, args, kwargs, node, result)
    return result


def read_known(frame: Frame, fact: Fact, receiver: Value, node: ast.AST) -> Value:
    """Read an attribute that the tables know; some communicate."""
    text = text_of(node)
    if fact.op is not None and communicates(frame, fact, receiver, [], {}):
        _emit_op(frame, fact, text, receiver, [], {}, node, text)
    return result_of_fact(frame, fact, text, receiver, [], {}, node)


def _is_named(node: ast.AST, pattern: str) -> bool:
    """Whether a pattern stands in what the program calls the receiver of a call."""
    if not pattern or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return re.search(pattern, text_of(node.func.value)) is not None


def communicates(
    frame: Frame, fact: Fact, receiver: Value | None, args: list[Value], kwargs: dict[str, Value]
) -> bool:
    """Whether this call communicates, as far as its switches and its receiver tell."""
    if fact.when is not None:
        value = argument(fact.when, args, kwargs)
        if value is None or (is_const(value) and not value.data[0]):
            return False
    if fact.unless is not None:
        value = argument(fact.unless, args, kwargs)
        if value is not None and is_const(value) and value.data[0]:
            return False
    if fact.during and not frame.machine.within(fact.during):
        return False
    if fact.told and not frame.machine.text_says(fact.told):
        return False
    if fact.when_sharded:
        candidates = [v for v in (receiver, *args[:1]) if v is not None]
        return any(sharded(frame, v) for v in candidates)
    return True


def _choose_sync(
    frame: Frame, fact: Fact, args: list[Value], kwargs: dict[str, Value], node: ast.AST, text: str
) -> None:
    """Gradients are reduced, or not, as an argument says: where it varies, some ranks reduce alone."""
    for which in fact.invariant:
        value = argument(which, args, kwargs)
        if value is not None and value.taint:
            given = argument_node(which, node)
            place = frame.place(node)
            op = Op(place, "gradient reduction", "collective", None, text)
            shown = text if given is None else text_of(given)
            frame.out.append(Branch(place, value, [op], [], "if", shown))


def sharded(frame: Frame, value: Value) -> bool:
    """Whether a value is, or stems from, an object whose parameters are spread over the ranks."""
    stack = [value]
    for _ in range(24):
        if not stack:
            return False
        current = stack.pop()
        if current.tag == "extobj":
            if facts.is_sharded(current.data[0]):
                return True
            if current.data[2] is not None:
                stack.append(current.data[2])
        elif current.tag == "expr":
            stack.extend(current.data[1])
        elif current.tag in ("tuple", "ite"):
            stack.extend(current.data)
        elif current.tag == "bound":
            stack.append(current.data[0])
    return False


def _emit_op(
    frame: Frame,
    fact: Fact,
    name: str,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    text: str,
) -> None:
    group = group_of(frame, fact, receiver, args, kwargs)
    op = Op(
        frame.place(node),
        fact.op or name,
        fact.kind,
        group,
        text,
        implicit=fact.event == "synced-forward" or not fact.kind,
        root=argument(fact.root, args, kwargs),
        certainty=certainty_of(frame, fact),
    )
    describe(frame, op, fact, name, args, kwargs)
    note_own(frame, op, args, kwargs, node)
    items = argument(fact.each, args, kwargs)
    trip = NO_TAINT if items is None else with_length(frame, items).trip or NO_TAINT
    frame.out.append(Loop(op.place, [op], [], trip, "items", text, iterated=items) if trip else op)
    mark_aliases(frame, fact, args, kwargs, node)


def _write_buffers(
    frame: Frame,
    fact: Fact,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    result: Value,
) -> None:
    for which in fact.buffers:
        value = argument(which, args, kwargs)
        if value is not None:
            told_by = _root_of(fact, args, kwargs)
            sent = sent_keys(frame, value) if told_by is not None else None
            written = overwrite(frame, value, argument_node(which, node), NO_TAINT, node, told_by)
            if sent is not None:
                frame.machine.broadcast[frame.place(node)] = (sent, written.key)
            group = argument(fact.group, args, kwargs)
            if fact.kind == "collective" and (group is None or is_default_group(group)):
                carry(frame, written, [*args, *kwargs.values()])
    for which in fact.outputs:
        value = argument(which, args, kwargs)
        if value is not None:
            taint = frozenset({Taint("data", frame.place(node), text_of(node), "likely")})
            if fact.event.startswith("draw-"):
                taint = result.taint
            if name.endswith(".shuffle") and taint - value.taint:
                taint = union(taint, order_at(frame, node))
                value = retaint(value, value.taint, value.trip or NO_TAINT)
            overwrite(frame, value, argument_node(which, node), taint, node)


def _root_of(fact: Fact, args: list[Value], kwargs: dict[str, Value]) -> int | None:
    """The rank whose contents a broadcast over all ranks gives to everyone; None where that is not known."""
    group = argument(fact.group, args, kwargs)
    if not (fact.op or "").startswith("broadcast") or not (group is None or is_default_group(group)):
        return None
    root = argument(fact.root, args, kwargs) or constant(0)
    return root.data[0] if is_const(root) and isinstance(root.data[0], int) else None


def overwrite(
    frame: Frame,
    value: Value,
    target: ast.expr | None,
    taint: frozenset[Taint],
    node: ast.AST,
    told_by: int | None = None,
) -> Value:
    """A call wrote into an argument: its contents have the taint given, whatever they had before.

    Gives the contents. ``told_by``: they are those of this rank.
    """
    from .assignment import assign

    state = frame.live
    if value.tag == "obj" and frame.machine.objects.info(value).kind != "instance":
        object_id = value.data[0]
        old = state.heap.fields(object_id)
        contents = symbol(("filled", frame.place(node), object_id), taint)
        if told_by is not None and list(old) == ["0"]:
            contents = told(contents, told_by, old["0"])
        state.heap[object_id] = dict.fromkeys({*old} | {"*"}, contents)
        if value.taint:
            clean = Value("obj", value.data, taint, value.trip)
            state.replace_everywhere(value, clean)
        return contents
    if value.tag in ("const", "ext", "func", "class", "module", "extobj"):
        return value
    fresh = symbol(("filled", frame.place(node), text_of(node, 30)), taint, value.trip)
    if value.tag == "ite":
        fresh = _overwrite_either(frame, value, fresh)
    state.replace_everywhere(value, fresh)
    if isinstance(target, (ast.Name, ast.Attribute)):
        assign(frame, target, fresh)
    elif isinstance(target, ast.Subscript):
        assign(frame, target, fresh, weak=False)
    return fresh


def _overwrite_either(frame: Frame, value: Value, fresh: Value) -> Value:
    """Of several objects the one at hand is written: all have the same contents after it, None stays None."""
    if value.tag == "ite":
        condition, then, orelse = value.data
        return choice(
            condition, _overwrite_either(frame, then, fresh), _overwrite_either(frame, orelse, fresh)
        )
    if value.tag == "obj" and frame.machine.objects.info(value).kind != "instance":
        state = frame.live
        item = retaint(fresh, fresh.taint, None)  # the length of the container is not that of an item
        state.heap[value.data[0]] = dict.fromkeys({*state.heap.fields(value.data[0])} | {"*"}, item)
        return Value("obj", value.data, fresh.taint, value.trip) if value.taint else value
    if value.tag in ("const", "ext", "func", "class", "module", "extobj", "obj"):
        return value
    return fresh


def result_of_fact(
    frame: Frame,
    fact: Fact,
    name: str,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST | None,
) -> Value:
    """The result of a known call or attribute."""
    place = frame.place(node) if node is not None else frame.place(frame.module.outline)
    text = (
        text_of(node)
        if node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))
        else name
    )
    if fact.items:
        from .expressions import tuple_value

        return tuple_value(
            [
                _typed(item, fact, name, receiver, args, place, index)
                if item
                else symbol((name, place, index))
                for index, item in enumerate(fact.items)
            ]
        )
    if fact.parts:
        return _pair(frame, fact, name, receiver, args, kwargs, node)
    local = own_norm(frame, fact, node)
    if local is not None:
        return local
    if fact.result == "varying":
        value = varying_value(frame, fact, name, receiver, args, kwargs, place, node, text)
        if fact.varying == "random" and name.startswith("torch."):  # the arguments say how many are drawn
            return retaint(value, value.taint, as_many_as_asked(name, args, kwargs))
        return value
    if fact.event == "is-available":
        return TRUE
    if fact.event == "is-initialized":
        known = frame.state.field(GROUP, "initialized") if frame.state is not None else None
        return known or TRUE
    if fact.event == "world-size":
        group = argument(fact.group, args, kwargs)
        if group is None or is_default_group(group):
            return Value("world")
        return expression("group-size", (group,))
    if fact.event == "group-size":
        return expression("group-size", (external(name), *args))
    if fact.retypes is not None:
        return _retype(frame, fact, args, kwargs, node)
    if fact.result == "receiver":
        return receiver if receiver is not None else symbol((name, place))
    if fact.result == "arg0":
        return skipping(fact, args, kwargs) if args else symbol((name, place))
    if fact.result == "args":
        return wrapped_arguments(frame, fact, args, place)
    if fact.event == "new-group":
        from .containers import frozen

        members = (
            [frozen(frame, argument(fact.invariant[0], args, kwargs) or NONE)] if fact.invariant else args
        )
        return _typed(fact.returns, fact, name, receiver, members, place, 0)
    if fact.returns:
        made_of = made_from(fact, receiver, args, kwargs)
        return _typed(_type_of_result(fact, args, kwargs), fact, name, receiver, made_of, place, 0)
    if fact.result == "uniform":
        return symbol((name, place))
    given = [value for key, value in kwargs.items() if key not in ("device", "dtype")]
    everything = [*([receiver] if receiver is not None else []), *args, *given]
    return expression(f"call:{name}", [*(whole(frame, value) for value in everything), *dtype_given(kwargs)])


def _pair(
    frame: Frame,
    fact: Fact,
    name: str,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST | None,
) -> Value:
    """A tuple whose items mean different things: ``(rank, world_size)``."""
    from .expressions import tuple_value

    facts_of = (replace(part, group=part.group or fact.group) for part in fact.parts)
    return tuple_value([result_of_fact(frame, one, name, receiver, args, kwargs, node) for one in facts_of])


def _type_of_result(fact: Fact, args: list[Value], kwargs: dict[str, Value]) -> str:
    """The type of what a call returns; a constant is the same everywhere and asks for nothing else."""
    given = None if fact.returns_if is None else argument(fact.returns_if[0], args, kwargs)
    return fact.returns if fact.returns_if is None or given is None or is_const(given) else fact.returns_if[1]


def _typed(
    type_name: str,
    fact: Fact,
    name: str,
    receiver: Value | None,
    args: list[Value],
    place: object,
    index: int,
) -> Value:
    payload = args[0] if args else None
    origin: tuple[object, ...] = (name, place, index)
    if type_name in _ASKED_FOR and fact.kind != "lifecycle":  # asked for twice, it is the same
        origin = (name, None if receiver is None else receiver.key, *(a.key for a in args), index)
    if fact.result == "uniform" or fact.kind == "lifecycle":
        taint = NO_TAINT
    else:
        taint = union(*(a.taint for a in args)) if args else NO_TAINT
    return Value(
        "extobj",
        (type_name, origin, payload),
        taint,
        None,
        ("extobj", type_name, *origin),
    )


def _retype(
    frame: Frame, fact: Fact, args: list[Value], kwargs: dict[str, Value], node: ast.AST | None
) -> Value:
    assert fact.retypes is not None
    value = argument(fact.retypes, args, kwargs) or NONE
    place = frame.place(node) if node is not None else None
    typed = Value(
        "extobj",
        (fact.returns, ("retyped", place), value),
        value.taint,
        None,
        ("extobj", fact.returns, value.key),
    )
    target = argument_node(fact.retypes, node)
    if frame.state is not None and value.tag != "const":
        frame.live.replace_everywhere(value, typed)
        if isinstance(target, (ast.Name, ast.Attribute)):
            from .assignment import assign

            assign(frame, target, typed)
    return typed
