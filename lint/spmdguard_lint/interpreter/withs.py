"""With statements: project context managers are followed, library ones through the fact tables."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

from ..facts import lookup as facts
from ..source.walking import walk
from ..traces.catching import catches
from ..traces.nodes import (
    OWN_IN_JOIN,
    Branch,
    Call,
    Handler,
    Jump,
    Node,
    Op,
    Region,
    Tree,
    Try,
    Yielded,
    every_node,
    is_own,
)
from ..values.shares import is_even_share, uncut
from ..values.value import (
    NO_TAINT,
    NONE,
    TRUE,
    Taint,
    Taints,
    Value,
    is_const,
    is_split,
    negate,
    symbol,
    union,
)
from .assignment import assign
from .comparisons import simplify_condition
from .contents import is_container
from .exits import Exits
from .expressions import evaluate, text_of
from .frame import Frame, Raised, Watch
from .iterating import length_of
from .state import State, join
from .statements import execute_block

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo

_MAX_YIELDS = 4  # of one context manager, each of which runs the block once more


def execute_with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    """A with statement; several items nest."""
    _enter(frame, node, 0)


def _enter(frame: Frame, node: ast.With | ast.AsyncWith, position: int) -> None:
    if frame.state is None:
        return
    if position == len(node.items):
        execute_block(frame, node.body)
        return
    item = node.items[position]
    manager = evaluate(frame, item.context_expr)
    if not frame.reachable:
        return

    def body(entered: Value) -> None:
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, entered)
        _enter(frame, node, position + 1)

    enter_manager(frame, manager, item.context_expr, body)


def enter_manager(frame: Frame, manager: Value, node: ast.expr, body: Callable[[Value], None]) -> None:
    """Run ``body`` inside a context manager."""
    tag = manager.tag
    if tag == "manager":
        _generator_manager(frame, manager, node, body)
    elif tag == "obj" and frame.machine.objects.info(manager).kind == "instance":
        _object_manager(frame, manager, node, body)
    elif tag == "context":
        _library_manager(frame, manager, node, body)
    elif tag == "extobj":
        _instance_manager(frame, manager, node, body)
    elif is_split(manager) and _matters(frame, manager):
        _either_manager(frame, manager, node, body)
    else:
        body(symbol(("entered", frame.place(node)), manager.taint))


def _matters(frame: Frame, value: Value) -> bool:
    from ..values.value import alternatives

    return any(v.tag in ("manager", "obj", "context") for v in alternatives(value))


def _either_manager(frame: Frame, manager: Value, node: ast.expr, body: Callable[[Value], None]) -> None:
    condition, then, orelse = manager.data
    before, outer = frame.live, frame.arms
    frame.state, frame.arms = before.copy(), (*outer, True)
    with frame.collecting() as then_nodes:
        enter_manager(frame, then, node, body)
    then_state = frame.state
    frame.state, frame.arms = before.copy(), (*outer, False)
    with frame.collecting() as else_nodes:
        enter_manager(frame, orelse, node, body)
    frame.arms = outer
    frame.state = join(then_state, frame.state, condition)
    frame.out.append(Branch(frame.place(node), condition, then_nodes, else_nodes, "with", text_of(node)))


def _generator_manager(frame: Frame, manager: Value, node: ast.expr, body: Callable[[Value], None]) -> None:
    """``@contextmanager``: the body runs where the generator yields, in each arm that does."""
    from .following import hide
    from .machine import BudgetExceeded, FollowExceeded
    from .outcomes import return_value
    from .parameters import bind_arguments

    function, args, kwargs = manager.data
    machine = frame.machine
    if function.tag != "func" or function.data[0] in machine.stack or len(machine.stack) > 9:
        body(symbol(("entered", frame.place(node))))
        return
    info, closure, receiver = function.data
    inner = Frame(machine, info.module, info, State({}, frame.live.heap), frame.depth + 1, enclosing=closure)
    inner.caller = frame
    bind_arguments(inner, info, receiver, list(args), dict(kwargs), False)
    variables = frame.live.variables
    ran: set[tuple[int, tuple[bool, ...]]] = set()
    ends: list[tuple[State | None, Taints]] = []

    def at_yield(running: Frame, value: Value, where: ast.AST) -> Value:
        if (id(where), running.arms) in ran or len(ran) >= _MAX_YIELDS:
            return NONE
        ran.add((id(where), running.arms))
        frame.state = State(variables, running.live.heap)
        machine.stack.remove(info)
        watch = Watch(frame.live.copy(), len(frame.path))
        frame.watchers.append(watch)
        try:
            with frame.collecting() as nodes:
                body(value)
        finally:
            machine.stack.append(info)
            frame.watchers.pop()
        running.out.append(Yielded(frame.place(node), nodes, "with"))
        ends.append((frame.state, running.path_taint()))
        if frame.state is not None:
            running.state = State(running.live.variables, frame.state.heap)
        if running.watchers:
            running.watchers[-1].states.append(running.live.copy())
        for one in watch.raises:
            swallowed = any(outer.catches(one.name) for outer in running.watchers)
            _raised_at_yield(frame, running, one, swallowed, frame.place(node))
        return NONE

    inner.yield_hook = at_yield
    machine.enter(info)
    out_of_budget = False
    try:
        with inner.collecting() as nodes:
            try:
                execute_block(inner, info.body)
            except BudgetExceeded:
                out_of_budget = True
            except FollowExceeded:
                machine.truncated = True
                inner.state = None
                hide(frame, info, node)
    finally:
        machine.stack.pop()
    _, state = return_value(inner, inner.place(info.node))
    if len(ends) > 1:
        chosen = symbol(("entered", frame.place(node)), union(*(taint for _, taint in ends)))
        frame.state = reduce(lambda first, second: join(first, second, chosen), [end for end, _ in ends])
    if frame.state is not None and state is not None:
        frame.state = State(frame.state.variables, state.heap)
    if nodes:
        frame.out.append(Call(frame.place(node), info.qualname, nodes, text_of(node), "manager"))
    if not ran and not out_of_budget:
        frame.state = State(variables, state.heap) if state is not None else None
    if out_of_budget:
        raise BudgetExceeded


def _raised_at_yield(frame: Frame, running: Frame, one: Raised, swallowed: bool, place: object) -> None:
    """An exception of the caller's block comes out of the yield; where it is caught, the caller goes on."""
    running.hand_on(one._replace(state=State(dict(running.live.variables), one.state.heap)))
    if swallowed:
        frame.state = join(one.state.copy(), frame.state, symbol((place, "raised"), one.taint))
    else:
        frame.hand_on(one)


def _object_manager(frame: Frame, manager: Value, node: ast.expr, body: Callable[[Value], None]) -> None:
    from .following import inline_call

    cls = frame.machine.objects.info(manager).cls
    assert cls is not None
    enter = cls.find_method("__enter__") or cls.find_method("__aenter__")
    leave = cls.find_method("__exit__") or cls.find_method("__aexit__")
    entered: Value = manager
    if enter is not None:
        entered = inline_call(frame, enter, manager, [], {}, node)
    if leave is None or not frame.reachable:
        body(entered)
        return
    place = frame.place(node)
    exits = Exits(frame)
    watch = Watch(frame.live.copy(), len(frame.path))
    frame.watchers.append(watch)
    with frame.collecting() as inside:
        body(entered)
    frame.watchers.pop()
    handlers = _swallowed_by(frame, manager, leave, watch, node)
    for one in watch.raises:
        if any(catches(handler, one.name) for handler in handlers):
            frame.state = join(one.state.copy(), frame.state, symbol((place, "raised"), one.taint))
        else:
            frame.hand_on(one)
    results: list[Value] = []

    def leaving() -> None:
        exception = symbol(("exc-type", place))
        results.append(inline_call(frame, leave, manager, [exception, exception, exception], {}, node))

    with frame.collecting() as final:
        exits.pass_through(leaving, place)
    if results and results[0].key == TRUE.key:
        handlers = [Handler(place, (), [], f"{cls.name}.__exit__")]
    if inside or final:
        frame.out.append(Try(place, inside, handlers, [], final, "with"))


def _answers(leave: FunctionInfo) -> bool:
    """Whether an ``__exit__`` returns anything but None and False: only then an exception may end there."""
    return any(
        isinstance(child, ast.Return)
        and child.value is not None
        and not (isinstance(child.value, ast.Constant) and not child.value.value)
        for child in walk(leave.node)
    )


def _swallowed_by(
    frame: Frame, manager: Value, leave: FunctionInfo, watch: Watch, node: ast.expr
) -> list[Handler]:
    """What ``__exit__`` makes of each class that the block raises: a handler where it answers that it is dealt with."""
    from .following import inline_call
    from .lookup import raised_class

    place = frame.place(node)
    handlers: list[Handler] = []
    if not _answers(leave):
        return handlers
    for name in dict.fromkeys(one.name for one in watch.raises if one.name):
        before = frame.state
        frame.state = next(one.state for one in watch.raises if one.name == name).copy()
        kind = raised_class(frame, name.partition("|")[0])
        instance = symbol(("exc-value", place, name))
        with frame.collecting():
            answer = inline_call(frame, leave, manager, [kind, instance, symbol(("trace", place))], {}, node)
        frame.state = before
        verdict = simplify_condition(answer)
        if is_const(verdict) and not verdict.data[0]:
            continue
        again = Jump(place, "raise", text_of(node), name)
        passing: list[Node] = (
            [] if is_const(verdict) else [Branch(place, verdict, [], [again], "with", text_of(node))]
        )
        handlers.append(Handler(place, (name.partition("|")[0],), passing, "__exit__"))
    return handlers


def _instance_manager(frame: Frame, manager: Value, node: ast.expr, body: Callable[[Value], None]) -> None:
    fact = facts.method(manager.data[0], "__enter__")
    if fact is not None and fact.wraps == "context":
        context = Value("context", (manager.data[0], fact, manager, ()), key=("context", frame.place(node)))
        _library_manager(frame, context, node, body)
        return
    end = facts.method(manager.data[0], "finish")
    if end is None or end.event != "tracker-end":
        body(manager)
        return
    with frame.collecting() as nodes:
        body(manager)
    frame.out.append(Region(frame.place(node), "tracker-start", nodes, text_of(node)))


def _library_manager(frame: Frame, manager: Value, node: ast.expr, body: Callable[[Value], None]) -> None:
    name, fact, _receiver, args = manager.data
    place = frame.place(node)
    text = text_of(node)
    own = fact.varying == "filesystem" and not fact.returns  # a folder that each process makes for itself
    made = frozenset({Taint(fact.varying, place, text, fact.certainty)}) if own else NO_TAINT
    entered = symbol(("entered", place), made)
    if fact.event == "split":
        entered = _share(frame, args, node)
    nothing = name == "contextlib.suppress" and not args and not (isinstance(node, ast.Call) and node.args)
    if (fact.suppresses and not nothing and not asked_to_raise(node)) or fact.event == "defer":
        _swallowing(frame, fact, args, node, lambda: body(entered))
        return
    if fact.main_only and not fact.op and fact.event != "main-first":
        from .facts_values import main_predicate
        from .statements import branch

        condition = main_predicate(frame, fact.main_only, node, text)
        branch(frame, node, condition, lambda: body(entered), lambda: None, "with", text)
        return
    if fact.event == "main-first" or (fact.op and fact.main_only):
        _main_first(frame, fact, node, lambda: body(entered), agreed=name.startswith("spmdguard."))
        return
    if fact.op is not None:
        frame.out.append(Op(place, fact.op, fact.kind, None, text, implicit=True))
    kind = fact.event if fact.event in ("join", "no-sync", "tracker-start") else ""
    if not kind:
        body(entered)
        return
    with frame.collecting() as nodes:
        body(entered)
    if kind == "join" and _joins_itself(nodes, node):
        kind = OWN_IN_JOIN
    frame.out.append(Region(place, kind, nodes, text))


def _joins_itself(nodes: Tree, node: ast.expr) -> bool:
    """Whether a block that allows uneven inputs calls collectives of its own, which nothing calls for a rank without.

    An own class takes part where it tells the context of each round; where the ranks are told to end together, all
    leave by an error.
    """
    if isinstance(node, ast.Call) and (
        len(node.args) > 2 or any(keyword.arg == "throw_on_early_termination" for keyword in node.keywords)
    ):
        return False
    ops = [inner for inner in every_node(nodes) if isinstance(inner, Op)]
    return any(map(is_own, ops)) and not any(op.name == "Join.notify" for op in ops)


def _share(frame: Frame, args: tuple[Value, ...], node: ast.expr) -> Value:
    """What ``split_between_processes(items)`` gives to each rank: one item more to some, unless they are padded."""
    place = frame.place(node)
    padded = len(args) > 1 or (
        isinstance(node, ast.Call) and any(keyword.arg == "apply_padding" for keyword in node.keywords)
    )
    rank = Value("rank", (), frozenset({Taint("rank", place, text_of(node), "likely")}))
    items = args[0] if args else None
    even = items is None or padded
    if items is not None and is_container(frame, items):
        even = even or frame.machine.objects.info(items).kind == "dict"  # whose values are split
    if not even and items is not None:
        even = is_even_share(rank, NONE, Value("world"), items, length_of(frame, uncut(items)))
    return symbol(("entered", place), NO_TAINT, NO_TAINT if even else rank.taint)


def asked_to_raise(node: ast.expr) -> bool:
    """Whether what would swallow an exception is asked to let it go on, or to call something in its place."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return any(
        keyword.arg in ("reraise", "onerror")
        and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in keywords
    )


def _swallowing(
    frame: Frame, fact: Any, args: tuple[Value, ...], node: ast.expr, body: Callable[[], None]
) -> None:
    """``contextlib.suppress(E)`` and ``deferring(...)``: an exception of the body ends it and nothing more."""
    place = frame.place(node)
    text = text_of(node)
    names = () if fact.event == "defer" else tuple(name for a in args for name in _exception_names(a))
    watch = Watch(frame.live.copy(), len(frame.path), [names])
    frame.watchers.append(watch)
    with frame.collecting() as nodes:
        body()
    frame.watchers.pop()
    raised = symbol(("raised", place), frozenset({Taint("exception", place, text, "likely")}))
    state = frame.state
    for seen in [*watch.states[:12], *(one.state for one in watch.raises if watch.catches(one.name))]:
        state = join(seen.copy(), state, raised) if state is not None else seen.copy()
    frame.state = state
    for one in watch.raises:
        if not watch.catches(one.name):
            frame.hand_on(one)
    if fact.event == "defer":
        frame.out.append(Region(place, "deferred", nodes, text))
        return
    handler = Handler(place, names, [], text)
    frame.out.append(Try(place, nodes, [handler], [], [], "with"))


def _exception_names(value: Value) -> tuple[str, ...]:
    """The class names that an argument of ``suppress`` stands for; "" where unknown."""
    if value.tag == "ext":
        return (str(value.data[0]).rpartition(".")[2],)
    if value.tag == "class":
        return (value.data[0].name,)
    if value.tag == "tuple":
        return tuple(name for item in value.data for name in _exception_names(item))
    return ("",)


def _main_first(frame: Frame, fact: Any, node: ast.expr, body: Callable[[], None], *, agreed: bool) -> None:
    """``main_process_first()``: the others wait before the body, the main process after it.

    spmdguard's own tells all ranks of an error in the block: ``agreed``.
    """
    from .facts_values import main_predicate

    place = frame.place(node)
    text = text_of(node)
    condition = main_predicate(frame, fact.main_only or "main", node, text)
    name = "barrier"  # whatever it is called, it is one: two such managers may stand inside each other
    before = Branch(
        place, negate(condition), [Op(place, name, "collective", None, text, implicit=True)], [], "with", text
    )
    after = Branch(
        place, condition, [Op(place, name, "collective", None, text, implicit=True)], [], "with", text
    )
    frame.out.append(before)
    with frame.collecting() as nodes:
        body()
    nodes = [Region(place, "agreed", nodes, text)] if agreed else nodes
    frame.out.append(Try(place, nodes, [], [], [after], "with"))
