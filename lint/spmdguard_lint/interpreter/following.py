"""Follow calls of project functions: with the arguments they get, within the budget, recursion widened."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..traces.contents import contents_of
from ..traces.doubts import CUT, HIDDEN
from ..traces.nodes import Call, Event, Fallible, Op
from ..values.evaluate import rank_dependent
from ..values.value import NO_TAINT, Taint, Taints, Value, doubted, expression, is_const, symbol, union
from . import parameters, statements
from .assignment import set_some_attribute
from .expressions import text_of
from .frame import Frame
from .kept import agree_on_failures
from .kinds import PLACEMENT
from .machine import MAX_DEPTH, TELLING, BudgetExceeded, FollowExceeded, lines_of
from .memo import Remembered
from .outcomes import return_value
from .state import State

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from .machine import Machine

_CARRIERS = frozenset({"extobj", "func", "bound", "partial", "wrapped", "generator", "manager"})


def trusted(frame: Frame, info: FunctionInfo, taint: Taints) -> Taints:
    """What is left of the arguments' reasons where a function was not followed, because following had ended.

    Functions that communicate are mostly there to agree (``dist_mean(loss)``): the ranks' reasons alone are left.
    What the function does is not known, so its result is only possibly rank-varying.
    """
    if frame.machine.reach.reaches(info):
        taint = frozenset(t for t in taint if t.kind in ("rank", "group-rank"))
    return doubted(taint)


def by_name(frame: Frame, info: FunctionInfo, node: ast.AST) -> Value | None:
    """What a function that was not followed tells of the rank by its name (``is_main_process``), if anything."""
    if info.is_property:
        fact = facts.unknown_attribute(info.name)
    else:
        fact = facts.unknown_method(info.name, _asked_for(info))
    if fact is None or fact.varying != "rank":
        return None
    from .facts_apply import result_of_fact

    return result_of_fact(frame, fact, text_of(node), None, [], {}, node)


def _asked_for(info: FunctionInfo) -> int:
    """How many arguments a function cannot do without, its receiver left out."""
    arguments = info.header.args
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    needed = positional + sum(default is None for default in arguments.kw_defaults)
    bound = info.cls is not None and "staticmethod" not in info.decorator_names
    return max(needed - bound, 0)


def hide(frame: Frame, info: FunctionInfo, node: ast.AST) -> None:
    """Mark that a function is called here that the trace does not show: what it communicates, or where it raises."""
    name = HIDDEN if frame.machine.reach.reaches(info) else CUT
    frame.out.append(Event(frame.place(node), name, text_of(node), call=info.full_name))


_LATER = frozenset({"generator", "coroutine"})


def hide_handed(frame: Frame, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """Mark that a library gets functions or generators that communicate: it may run them here, once or many times."""
    from .class_fields import assigned_later

    assigned_later(frame, [*args, *kwargs.values()], node)
    for value in (*args, *kwargs.values()):
        if value.tag in _LATER:
            from .lazily import consumed

            if consumed(frame, value, node):
                continue
        while value.tag in ("wrapped", "partial"):
            value = value.data[1] if value.tag == "wrapped" else value.data[0]
        if value.tag in ("func", "generator"):
            hide(frame, value.data[0], node)


def widened(value: Value, info: FunctionInfo, label: object) -> Value:
    """An argument of a recursive call: any depth's value, rank-varying for the same reasons.

    What the rank decides stays told apart: ranks that start from other numbers do not go as deep.
    """
    if rank_dependent(value) or (is_const(value) and isinstance(value.data[0], int)):
        return expression("recursive", (value,))
    if value.tag in ("const", "sym", "expr", "ite", "rank", "local_rank", "world"):
        return symbol(("recursive", info.full_name, label), value.taint, value.trip)
    return value


def _handed_on(frame: Frame, info: FunctionInfo, name: str, value: Value) -> bool:
    """Whether a recursive call gets what its function itself got: the rank stays the rank, however deep it goes."""
    own = frame.state.variables.get(name) if frame.state is not None and frame.function is info else None
    return own is not None and own.key == value.key and rank_dependent(value)


def _communicating(value: Value) -> bool:
    """Whether an argument lets the callee communicate: a wrapped model, a group, a function."""
    return value.tag in _CARRIERS or any(t.kind == "synced" for t in value.taint)


_WRAPS = (b"DataParallel", b"DDP", b"FSDP", b"fully_shard", b".prepare(", b"deepspeed")


def _runs_model(frame: Frame, info: FunctionInfo, receiver: Value | None) -> bool:
    """Whether a method calls a wrapped model that its object holds: a forward pass that communicates."""
    if receiver is None or receiver.tag != "obj" or info.cls is None or frame.state is None:
        return False
    source = info.cls.module.source
    wraps = frame.machine.wrapping.get(id(source))
    if wraps is None:
        wraps = frame.machine.wrapping[id(source)] = any(word in source.content for word in _WRAPS)
    if not wraps:
        return False
    held = frame.state.heap.get(receiver.data[0]) or parameters.class_template(frame, info.cls)
    models = [f".{name}(" for name, value in held.items() if value.tag == "extobj" and _is_model(value)]
    return bool(models) and frame.machine.reach.mentions(info, *models)


def _is_model(value: Value) -> bool:
    fact = facts.call_instance(value.data[0])
    return fact is not None and fact.op is not None


def _goes_through(frame: Frame, info: FunctionInfo, receiver: Value | None) -> bool:
    """Whether a generator method uses a field of its object in which ranks differ: its length may differ too."""
    if receiver is None or receiver.tag != "obj" or frame.state is None:
        return False
    held = frame.state.heap.get(receiver.data[0]) or {}
    own = {name for name, value in held.items() if value.taint and value.tag != "rank"}
    return any(frame.machine.reach.mentions(info, f".{name}") for name in own)


def _worth_following_here(
    frame: Frame, info: FunctionInfo, receiver: Value | None, everything: list[Value], taint: Taints
) -> bool:
    """Whether this call is followed: for what the function is, or for what it gets here.

    What a function of some length makes of rank-varying arguments is worth knowing.
    """
    if frame.machine.worth_following(info):
        return True
    if lines_of(info) <= TELLING and (
        taint or (info.scope.has_yield and _goes_through(frame, info, receiver))
    ):
        return True
    return any(_communicating(value) for value in everything) or _runs_model(frame, info, receiver)


def _what_is_given(
    info: FunctionInfo, receiver: Value | None, args: list[Value], kwargs: dict[str, Value]
) -> list[Value]:
    """What a call gives to its function, but for where things shall lie, which makes them no other things."""
    behind = 0 if receiver is None else 1
    names = [parameter.name for parameter in info.params[behind : behind + len(args)]]
    named = [*zip(names, args, strict=False), *(("", value) for value in args[len(names) :]), *kwargs.items()]
    given = [value for name, value in named if name not in PLACEMENT]
    return given if receiver is None else [receiver, *given]


def _once_more(machine: Machine, info: FunctionInfo, given: list[Value]) -> bool:
    """Whether a recursive call is followed: the first, and the next where the rank decides how deep it goes."""
    depth = machine.stack.count(info)
    deeper = depth == 1 or (depth == 2 and any(rank_dependent(value) for value in given))
    return deeper and machine.reach.reaches(info)


def inline_call(
    frame: Frame,
    info: FunctionInfo,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    *,
    closure: Frame | None = None,
    spread: bool = False,
) -> Value:
    """Follow a call into a project function with the arguments it gets here."""
    machine = frame.machine
    everything = _what_is_given(info, receiver, args, kwargs)
    taint = union(*(v.taint for v in everything)) if everything else NO_TAINT
    configured = machine.configured_function(info)
    if configured is not None:
        return _apply_configured(frame, configured, info, args, kwargs, node)
    if machine.follow_left < 0 and machine.worth_following(info):
        machine.truncated = True
        hide(frame, info, node)
        spoken = by_name(frame, info, node)
        if spoken is not None:
            return spoken
        return symbol(("unfollowed", info.full_name, frame.place(node)), trusted(frame, info, taint))
    if closure is None and not spread and _once_more(machine, info, [*args, *kwargs.values()]):
        behind = 0 if receiver is None else 1
        names = [*(parameter.name for parameter in info.params[behind:]), *("" for _ in args)]
        args = [
            v if _handed_on(frame, info, names[index], v) else widened(v, info, index)
            for index, v in enumerate(args)
        ]
        kwargs = {
            name: v if _handed_on(frame, info, name, v) else widened(v, info, name)
            for name, v in kwargs.items()
        }
        return run_body(frame, info, receiver, args, kwargs, node, closure, spread)
    if info in machine.stack or len(machine.stack) >= MAX_DEPTH or frame.depth > 24:
        for value in args if machine.sets_by_name(info) else ():
            set_some_attribute(frame, value, symbol("name"), node)
        return symbol(("recursive", info.full_name, frame.place(node)), taint)
    if info.is_declaration:
        frame.out.append(Fallible(frame.place(node), text_of(node), False))
        hide_handed(frame, args, kwargs, node)
        return expression(f"call:{info.full_name}", everything)
    if not _worth_following_here(frame, info, receiver, everything, taint):
        frame.out.append(Fallible(frame.place(node), text_of(node), False))
        if info.scope.has_yield:
            return symbol(("call", info.full_name, frame.place(node)), taint, taint)
        return expression(f"call:{info.full_name}", everything, extra=taint)
    if info.scope.has_yield:
        return Value(
            "generator",
            (info, closure, receiver, tuple(args), tuple(sorted(kwargs.items()))),
            taint,
            None,
            ("generator", id(info), frame.place(node)),
        )
    return run_body(frame, info, receiver, args, kwargs, node, closure, spread)


def run_body(
    frame: Frame,
    info: FunctionInfo,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    closure: Frame | None,
    spread: bool,
) -> Value:
    """Interpret the body of a called function; its nodes become one ``Call`` node."""
    machine = frame.machine
    live = frame.live
    calls = machine.calls
    values = [*([receiver] if receiver is not None else []), *args, *kwargs.values()]
    made = receiver if receiver is not None and _is_being_made(frame, info, receiver) else None
    key = None
    if closure is None and info.parent is None:
        key = calls.key(info, made, receiver, args, kwargs, len(machine.stack), spread)
    if key is not None:
        known = calls.find(key, live, machine.room, machine.hooks)
        if known is not None:
            _replay(frame, info, known, values, node)
            return known.value
    before = live.heap.copy()
    inner = Frame(machine, info.module, info, State({}, live.heap), frame.depth + 1, enclosing=closure)
    if closure is None and info.parent is not None:
        inner.enclosing = machine.enclosing_frame(info.parent)
    inner.self_value = receiver
    inner.caller, inner.called_at = frame, frame.place(node)
    parameters.bind_arguments(inner, info, receiver, args, dict(kwargs), spread)
    bound = dict(inner.live.variables)
    machine.enter(info)
    effort = machine.begin_call()
    asked = machine.hooks_asked
    budget_out = False
    try:
        with inner.collecting() as nodes:
            try:
                statements.execute_block(inner, info.body)
            except BudgetExceeded:
                budget_out = True
            except FollowExceeded:
                machine.truncated = True
                frame.state = State(live.variables, before)
                hide(frame, info, node)
                spoken = by_name(frame, info, node)
                return spoken or symbol(("unfollowed", info.full_name, frame.place(node)))
    finally:
        machine.stack.pop()
        whole = machine.end_call(effort)
    value, state = return_value(inner, inner.place(info.node))
    inner.state = state
    if nodes:
        frame.out.append(Call(frame.place(node), info.qualname, nodes, text_of(node)))
    if budget_out:
        raise BudgetExceeded
    if state is None:
        frame.state = None
    else:
        written = written_in_place(machine, info, bound, state.variables)
        if key is not None:
            numbered = [(i, new) for i, given in enumerate(values) for old, new in written if given is old]
            done = Remembered(nodes, value, inner.escaped, numbered, made)
            done.cut = not whole
            done.hooks = machine.hooks if machine.hooks_asked > asked else None
            done.effort = effort.left - machine.follow_left if machine.truncated else calls.size(nodes)
            calls.remember(key, done, values, before, state.heap, effort.room)
        frame.state = State(live.variables, state.heap)
        for old, new in written:
            frame.state.replace_everywhere(old, new)
        replay_closure(closure, inner)
    return value


def _is_being_made(frame: Frame, info: FunctionInfo, receiver: Value) -> bool:
    """Whether this call initialises a new object: then which one it is makes no difference to what it does."""
    return info.name == "__init__" and receiver.tag == "obj" and frame.live.heap.get(receiver.data[0]) == {}


def _replay(frame: Frame, info: FunctionInfo, known: Remembered, values: list[Value], node: ast.AST) -> None:
    """Let a call that was followed before happen again."""
    live = frame.live
    frame.machine.follow_left -= known.effort
    frame.machine.truncated = frame.machine.truncated or known.cut
    frame.machine.hooks_asked += known.hooks is not None
    if known.nodes:
        frame.out.append(Call(frame.place(node), info.qualname, known.nodes, text_of(node)))
        if frame.machine.failed and "sync_should_stop" in contents_of(known.nodes).ops:
            agree_on_failures(frame, "sync_should_stop", [])
    live.heap.update(known.objects_for(values))
    for position, new in known.written:
        live.replace_everywhere(values[position], new)
    for raised in known.raised:
        frame.hand_on(raised._replace(state=live.copy()))


_NOT_WRITTEN = frozenset(
    {"const", "ext", "func", "class", "module", "obj", "rank", "world", "local_rank", "bound"}
)


def written_in_place(
    machine: Machine, info: FunctionInfo, bound: dict[str, Value], after: dict[str, Value]
) -> list[tuple[Value, Value]]:
    """What a function has written into its arguments (``dist.all_reduce(flag)`` in a wrapper): old and new values.

    A parameter that the function binds anew tells nothing of the argument.
    """
    changed = [
        name
        for name, old in bound.items()
        if name in after and after[name] is not old and old.tag not in _NOT_WRITTEN
    ]
    if not changed:
        return []
    stored = machine.stored_names(info.node)
    found: list[tuple[Value, Value]] = []
    for name in changed:
        old, new = bound[name], after[name]
        if name in stored:
            continue
        if old.tag == new.tag == "tuple" and len(old.data) == len(new.data):
            found.extend((a, b) for a, b in zip(old.data, new.data, strict=True) if a is not b)
        else:
            found.append((old, new))
    return found


def replay_closure(closure: Frame | None, inner: Frame) -> None:
    """Give ``nonlocal`` assignments of a nested function to the frame that owns the variable."""
    function = inner.function
    if closure is None or function is None or not function.nonlocal_names or inner.state is None:
        return
    for name in function.nonlocal_names:
        value = inner.state.variables.get(name)
        owner: Frame | None = closure
        while owner is not None and value is not None:
            if owner.state is not None and name in owner.state.variables:
                owner.state.variables[name] = value
                break
            owner = owner.enclosing


def _apply_configured(
    frame: Frame, kind: str, info: FunctionInfo, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A function that the project's configuration describes."""

    label = ("configured", info.full_name, frame.place(node))
    if kind == "collectives":
        frame.out.append(Op(frame.place(node), info.name, "collective", None, text_of(node)))
        return symbol(label)
    if kind == "rank-sources":
        return symbol(label, frozenset({Taint("rank", frame.place(node), text_of(node))}))
    if kind == "rank-local":
        frame.out.append(Fallible(frame.place(node), text_of(node), True))
    return symbol(label)
