"""Calls: project functions are followed in context, library calls through the fact tables."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..traces.nodes import Branch, Event, Region
from ..values.value import (
    FALSE,
    NO_TAINT,
    NONE,
    TRUE,
    Place,
    Value,
    choice,
    expression,
    is_split,
    symbol,
)
from .arguments import evaluate_arguments, with_hidden
from .caches import keeps_nothing
from .contents import is_container
from .enums import member_with_value
from .expressions import evaluate, text_of
from .following import inline_call
from .forward_hooks import REGISTERING, note_registered, run_registered
from .frame import Frame
from .kept import default_of, present, result_or_default
from .machine import MAX_DEPTH
from .modes import set_mode
from .notified import notified
from .parameters import field_factory, field_keywords
from .state import State, join

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo


def evaluate_call(frame: Frame, node: ast.Call) -> Value:
    """The value of a call expression."""
    frame.machine.step()
    function_node = node.func
    if isinstance(function_node, ast.Name) and function_node.id == "super":
        return _super_value(frame)
    stars = any(isinstance(arg, ast.Starred) for arg in node.args)
    if isinstance(function_node, ast.Attribute):
        receiver = evaluate(frame, function_node.value)
        name = function_node.attr
        args, kwargs, spread, hidden = evaluate_arguments(frame, node, split=stars)
        if not stars:
            result = call_method(frame, receiver, name, args, kwargs, node, spread=spread)
            return with_hidden(result, f"call:{name}", hidden) if hidden else result

        def method(given: list[Value]) -> Value:
            return call_method(frame, receiver, name, given, dict(kwargs), node, spread=spread)

        return _with_each(frame, args, method, node)
    function = evaluate(frame, function_node)
    args, kwargs, spread, hidden = evaluate_arguments(frame, node, split=stars)
    if not stars:
        result = call_value(frame, function, args, kwargs, node, spread=spread)
        return with_hidden(result, f"call:{hash(function.key)}", hidden) if hidden else result

    def called(given: list[Value]) -> Value:
        return call_value(frame, function, given, dict(kwargs), node, spread=spread)

    return _with_each(frame, args, called, node)


def _with_each(frame: Frame, args: list[Value], call: Callable[[list[Value]], Value], node: ast.AST) -> Value:
    """A call with each of the sequences that the condition behind a star chooses from, in an arm of its own."""
    at = next((position for position, value in enumerate(args) if value.tag == "stars"), None)
    if at is None:
        return call(args)

    def one(items: Value) -> Value:
        if items.tag == "ite":
            return _call_each(frame, items, one, node)
        return _with_each(frame, [*args[:at], *items.data, *args[at + 1 :]], call, node)

    return one(args[at].data[0])


def _super_value(frame: Frame) -> Value:
    function = frame.function
    outer: Frame | None = frame
    while function is not None and function.cls is None and outer is not None:
        outer = outer.enclosing
        function = outer.function if outer is not None else None
    if function is None or function.cls is None or outer is None or function.self_name is None:
        return symbol(("super", frame.module.filename))
    state = outer.state
    instance = state.variables.get(function.self_name, NONE) if state is not None else NONE
    return Value("super", (function.cls, instance), NO_TAINT, None, ("super", id(function.cls)))


def call_method(
    frame: Frame,
    receiver: Value,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.Call,
    *,
    spread: bool = False,
) -> Value:
    """``receiver.name(...)``."""
    receiver = present(receiver)
    tag = receiver.tag
    if name in REGISTERING:
        note_registered(frame, name, args, kwargs, node)
    if is_split(receiver) and _worth_splitting(receiver):
        return _call_each(
            frame,
            receiver,
            lambda one: call_method(frame, one, name, list(args), dict(kwargs), node, spread=spread),
            node,
        )
    if tag == "obj":
        info = frame.machine.objects.info(receiver)
        if info.kind != "instance":
            from .container_methods import call_container_method

            return call_container_method(frame, receiver, name, args, kwargs, node)
        if name in ("train", "eval") and info.cls is not None and info.cls.find_method(name) is None:
            mode = FALSE if name == "eval" else next(iter([*args, *kwargs.values()]), TRUE)
            set_mode(frame, receiver, mode)
    if tag == "extobj":
        fact = facts.method(receiver.data[0], name)
        if fact is not None:
            from .facts_apply import apply_fact

            return apply_fact(frame, fact, f"{receiver.data[0]}.{name}", receiver, args, kwargs, node)
        payload = receiver.data[2]
        if payload is not None and payload.tag in ("obj", "extobj"):
            return call_method(frame, payload, name, args, kwargs, node, spread=spread)
    if tag in ("ext", "module", "class", "obj", "super"):
        from .attributes import read_attribute

        function = read_attribute(frame, receiver, name, node.func)
        if function.tag not in ("sym", "expr"):
            return call_value(frame, function, args, kwargs, node, spread=spread)
        if tag in ("ext", "module"):
            return call_value(frame, function, args, kwargs, node, spread=spread)
    from .library import call_unknown_method

    notified(frame, name, args, kwargs, node)
    return call_unknown_method(frame, receiver, name, args, kwargs, node)


def _worth_splitting(value: Value) -> bool:
    from .expressions import may_be_references

    return may_be_references(value)


def _call_each(frame: Frame, value: Value, call: object, node: ast.AST) -> Value:
    """Call both alternatives of a choice, each in its own arm."""
    condition, then, orelse = value.data
    before = frame.live.copy() if frame.state is not None else None
    with frame.collecting() as then_nodes:
        first: Value = call(then) if then.key != NONE.key else NONE  # type: ignore[operator]
    after = frame.state
    frame.state = before
    with frame.collecting() as else_nodes:
        second: Value = call(orelse) if orelse.key != NONE.key else NONE  # type: ignore[operator]
    frame.state = join(after, frame.state, condition)
    if then_nodes or else_nodes:
        frame.out.append(
            Branch(frame.place(node), condition, then_nodes, else_nodes, "ternary", text_of(node))
        )
    return choice(condition, first, second)


def call_value(
    frame: Frame,
    function: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    *,
    spread: bool = False,
    property_read: bool = False,
) -> Value:
    """Call a value."""
    tag = function.tag
    if tag == "func":
        info, closure, receiver = function.data
        return inline_call(frame, info, receiver, args, kwargs, node, closure=closure, spread=spread)
    if tag == "wrapped":
        return _call_wrapped(frame, function, args, kwargs, node, spread)
    if tag == "class":
        return instantiate(frame, function.data[0], args, kwargs, node, spread=spread)
    if tag == "ext":
        from .library import call_external

        return call_external(frame, function.data[0], args, kwargs, node, spread=spread)
    if tag == "bound":
        receiver, name = function.data
        if receiver.tag == "extobj":
            fact = facts.method(receiver.data[0], name)
            if fact is not None:
                from .facts_apply import apply_fact

                return apply_fact(frame, fact, f"{receiver.data[0]}.{name}", receiver, args, kwargs, node)
        return _call_inherited(frame, receiver, name, args, kwargs, node)
    if tag == "partial":
        inner, fixed, named = function.data
        merged = dict(named)
        merged.update(kwargs)
        return call_value(frame, inner, [*fixed, *args], merged, node, spread=spread)
    if is_split(function) and _worth_splitting(function):
        return _call_each(
            frame,
            function,
            lambda one: call_value(frame, one, list(args), dict(kwargs), node, spread=spread),
            node,
        )
    if tag == "obj":
        return _call_object(frame, function, args, kwargs, node, spread)
    if tag == "extobj":
        return _call_library_instance(frame, function, args, kwargs, node)
    from .library import call_unknown

    notified(frame, getattr(getattr(node, "func", None), "id", ""), args, kwargs, node)
    return call_unknown(frame, function, args, kwargs, node)


def _call_inherited(
    frame: Frame, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A method that a project class inherits from a library base."""
    from .facts_apply import apply_fact

    cls: ClassInfo | None = None
    if receiver.tag == "super":
        cls = receiver.data[0]
        receiver = receiver.data[1]
    elif receiver.tag == "obj":
        cls = frame.machine.objects.info(receiver).cls
    if cls is not None and name == "start":
        from .threads import started

        if started(frame, cls, receiver, name, node):
            return NONE
    bases = cls.external_bases() if cls is not None else []
    fact = facts.subclass_method(bases, name) if bases else None
    if fact is not None:
        return apply_fact(frame, fact, f"self.{name}", receiver, args, kwargs, node)
    return expression(f"call:{name}", [*args, *kwargs.values()])


def _call_object(
    frame: Frame, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST, spread: bool
) -> Value:
    from .facts_apply import apply_fact

    info = frame.machine.objects.info(function)
    if info.cls is None:
        return expression("call", [function, *args])
    method = info.cls.find_method("__call__") or info.cls.find_method("forward")
    if method is not None:
        from .attributes import bound_method

        return call_value(frame, bound_method(frame, method, function), args, kwargs, node, spread=spread)
    bases = info.cls.external_bases()
    for base in bases:
        fact = facts.call_instance(base)
        if fact is not None:
            return apply_fact(frame, fact, f"{info.cls.name}()", function, args, kwargs, node)
    return expression("call", [function, *args, *kwargs.values()])


def _call_library_instance(
    frame: Frame, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    from .facts_apply import apply_fact

    type_name, _, payload = function.data
    fact = facts.call_instance(type_name)
    inner = expression("call", [*args, *kwargs.values()])
    result = None
    if fact is not None:
        result = apply_fact(frame, fact, f"{type_name}()", function, args, kwargs, node)
        if fact.event == "synced-forward":
            run_registered(frame, node)
    if payload is not None and payload.tag == "obj" and frame.state is not None:
        inner = _call_object(frame, payload, list(args), dict(kwargs), node, False)
    if result is None:
        return inner
    if inner.tag == "tuple" and result.taint:
        from .attributes import merge_taint
        from .expressions import tuple_value

        return tuple_value([merge_taint(item, result) for item in inner.data])
    return _entries_of_output(frame, inner, result) if is_container(frame, inner) else result


def _entries_of_output(frame: Frame, inner: Value, result: Value) -> Value:
    """A dict or list that the module inside has made: the output is in its entries."""
    from .attributes import merge_taint
    from .containers import fields_of

    fields = fields_of(frame, inner)
    frame.live.heap[inner.data[0]] = {name: merge_taint(item, result) for name, item in fields.items()}
    return inner


def _call_wrapped(
    frame: Frame, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST, spread: bool
) -> Value:
    kind, inner, text = function.data[:3]
    if kind == "rank-local":
        with frame.collecting() as nodes:
            result = call_value(frame, inner, args, kwargs, node, spread=spread)
        if frame.state is None:
            frame.state = State({})
        frame.out.append(Region(frame.place(node), "deferred", nodes, text))
        if result.tag == "generator":
            frame.machine.kept[result.key] = text
        return result_or_default(frame, result, nodes, default_of(text), frame.place(node))
    if kind.startswith("main-only:"):
        from .facts_values import main_predicate

        condition = main_predicate(frame, kind.partition(":")[2], node, text)
        before = frame.live.copy()
        with frame.collecting() as nodes:
            result = call_value(frame, inner, args, kwargs, node, spread=spread)
        frame.state = join(frame.state, before, condition)
        frame.out.append(Branch(frame.place(node), condition, nodes, [], "decorator", text))
        return choice(condition, result, default_of(text))
    if kind.startswith("cached"):
        from .caches import call_cached

        return call_cached(frame, inner, args, kwargs, node, spread, timed=kind != "cached")
    if kind == "contextmanager":
        return Value(
            "manager", (inner, tuple(args), tuple(sorted(kwargs.items()))), key=("manager", frame.place(node))
        )
    result = call_value(frame, inner, args, kwargs, node, spread=spread)
    if kind == "afterwards":
        from .handing import run_afterwards

        run_afterwards(frame, function.data[3], text, node)
    return result


def instantiate(
    frame: Frame,
    cls: ClassInfo,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    *,
    spread: bool = False,
) -> Value:
    """A new instance of a project class, with ``__init__`` followed."""
    if cls.is_enum:
        return member_with_value(frame, cls, args[0] if args else NONE)
    place = frame.place(node)
    object_id = _identity(frame, place, cls)
    value = frame.machine.objects.make(object_id, "instance", cls)
    frame.live.heap[object_id] = {}
    keeps_nothing(frame, value)
    init = cls.find_method("__init__")
    if any(base.endswith("Sampler") for base in cls.external_bases()):
        _made_sampler(frame, cls, init, args, kwargs, node)
    if init is not None:
        if init in frame.machine.stack or len(frame.machine.stack) >= MAX_DEPTH + 3:
            return symbolic_of(frame, cls, node)
        inline_call(frame, init, value, args, kwargs, node, spread=spread)
        if frame.state is not None and not frame.state.heap.get(object_id):
            # nothing is known of how it was made but what it was made of
            frame.state.heap[object_id] = {f"<{position}>": arg for position, arg in enumerate(args)}
    else:
        _fill_dataclass(frame, cls, object_id, args, kwargs)
        after = cls.find_method("__post_init__")
        if after is not None:
            inline_call(frame, after, value, [], {}, node)
    return value


def _identity(frame: Frame, place: Place, cls: ClassInfo) -> tuple[object, ...]:
    """What tells an object from others: where it is made, and in which call, where one made there lives already."""
    known = ("new", place, frame.nesting, cls.full_name)
    sites = frame.machine.made_in
    if sites.setdefault(known, frame.called_at) == frame.called_at or known not in frame.live.heap:
        return known
    return (*known, frame.called_at)


def _made_sampler(
    frame: Frame,
    cls: ClassInfo,
    init: FunctionInfo | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> None:
    """Mark the making of a sampler of the project's own, with its arguments by name."""
    names = [a.arg for a in init.node.args.args[1:]] if init is not None else []
    keywords = {**dict(zip(names, args, strict=False)), **kwargs}
    event = Event(frame.place(node), "sampler", text_of(node), (), call=cls.full_name, keywords=keywords)
    frame.out.append(event)


def symbolic_of(frame: Frame, cls: ClassInfo, node: ast.AST) -> Value:
    """Some instance, when its construction is not followed."""
    from .parameters import symbolic_instance

    return symbolic_instance(frame, cls, ("unfollowed", cls.full_name))


def _made_later(default: ast.expr | None) -> bool:
    """``field(init=False)``: no parameter of the generated ``__init__``."""
    told = field_keywords(default).get("init")
    return isinstance(told, ast.Constant) and told.value is False


def _fill_dataclass(
    frame: Frame, cls: ClassInfo, object_id: tuple[object, ...], args: list[Value], kwargs: dict[str, Value]
) -> None:
    names: list[str] = []
    defaults: dict[str, tuple[ClassInfo, ast.expr]] = {}
    for owner in reversed(cls.mro()):
        for name in owner.annotations:
            if name not in names:
                names.append(name)
            if name in owner.class_assignments:
                defaults[name] = owner, owner.class_assignments[name]
    names = [name for name in names if name not in defaults or not _made_later(defaults[name][1])]
    for position, name in enumerate(names):
        if position < len(args):
            frame.live.set_field(object_id, name, args[position])
        elif name in kwargs:
            frame.live.set_field(object_id, name, kwargs[name])
        elif name in defaults:
            frame.live.set_field(object_id, name, _default_value(frame, *defaults[name]))


def _default_value(frame: Frame, owner: ClassInfo, default: ast.expr) -> Value:
    """The default of a dataclass's field, in the file of its class; ``default_factory`` is called."""
    apart = Frame(frame.machine, owner.module, None, State({}, frame.live.heap), frame.depth + 1)
    factory = field_factory(default)
    with apart.collecting():
        if factory is not None:
            return call_value(apart, evaluate(apart, factory), [], {}, default)
        return evaluate(apart, field_keywords(default).get("default", default))
