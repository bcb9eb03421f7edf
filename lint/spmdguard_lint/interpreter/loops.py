"""Loops to a fixpoint: for, while, comprehensions, and for loops over project generators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..source.unparsing import unparse
from ..traces.nodes import Branch, Call, Jump, Loop, Tree, Yielded
from ..values.value import (
    FALSE,
    NO_TAINT,
    NONE,
    OF_MEMORY,
    TRUE,
    Taint,
    Taints,
    Value,
    is_const,
    negate,
    retaint,
    symbol,
    union,
)
from .assignment import assign
from .callbacks import doubted_of_many, each_callback
from .containers import element_of
from .contents import as_chosen, with_length
from .expressions import evaluate, text_of, truthiness
from .frame import Frame, LoopFrame, YieldHook
from .gated import deciding
from .kept import ends_early, present
from .lengths import count_of, trip_taint
from .limits import is_limited, is_quiet_behind
from .numbered import Behind, generator_behind
from .orders import as_long, order_of
from .outcomes import given_in_round, given_inside, return_value
from .progress import left_over
from .protocols import iterator_of, next_of
from .registries import of_registry
from .selection import distinct
from .state import State, join, same, widen
from .statements import execute_block
from .summed import as_many_as_summed

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo

MAX_ROUNDS = 4


class Rounds(NamedTuple):
    """The states before a loop, at its head, and at the end of a round that goes on; how rounds end early.

    ``returned`` is how often the function returned before it.
    """

    before: State
    head: State
    back: State | None
    loop: LoopFrame
    returned: int


def execute_for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    """A for loop."""
    iterated = iterator_of(frame, with_length(frame, present(evaluate(frame, node.iter))), node.iter)
    behind = generator_behind(frame, iterated, node.iter)
    if behind is not None:
        _for_over_generator(frame, node, behind)
        return
    if frame.machine.appended and each_callback(frame, node, iterated):
        return
    item: list[Value] = []
    order = order_of(frame, iterated)
    trip = doubted_of_many(frame, iterated, trip_of(frame, iterated, order))
    trip = trip or as_many_as_summed(frame, iterated)
    ends: list[Taints] = [NO_TAINT]

    def element() -> Value:
        own, ends[0] = next_of(frame, iterated, node.iter)
        return own or element_of(frame, iterated, node)

    def body() -> None:
        if not item:
            item.append(element())
        else:
            item[0] = element()
        assign(frame, node.target, item[0])
        execute_block(frame, node.body)

    nodes, after = run_loop(frame, node, body)
    trip = union(trip, ends[0]) or of_registry(frame, node.iter, nodes)
    if trip and (is_limited(frame, iterated, nodes) or is_quiet_behind(frame, nodes, frame.place(node))):
        trip = NO_TAINT
    finish_loop(
        frame,
        node,
        nodes,
        after,
        trip,
        f"for {text_of(node.target)} in {text_of(node.iter)}",
        as_chosen(frame, iterated) if iterated.tag == "ite" else iterated,
        count_of(iterated),
    )
    if item and frame.out and isinstance(frame.out[-1], Loop) and frame.out[-1].place == frame.place(node):
        frame.out[-1].order = (*sorted(order), *order_taint(item[0]))


def order_taint(item: Value) -> tuple[Taint, ...]:
    """Why the items of a loop may come in another order on each rank."""
    parts = item.data if item.tag == "tuple" else (item,)
    return tuple(sorted({t for part in parts for t in part.taint if t.kind == "order"}))


def trip_of(frame: Frame, iterated: Value, order: Taints) -> Taints:
    """Why ranks run a loop a different number of times; what only orders the items is no reason."""
    if as_long(frame, iterated):
        return union(*(part.trip or NO_TAINT for part in iterated.data[1:]))
    if not order:
        return trip_taint(iterated)
    reasons = {(t.place, t.text) for t in order}
    return frozenset(t for t in trip_taint(iterated) if (t.place, t.text) not in reasons)


def execute_while(frame: Frame, node: ast.While) -> None:
    """A while loop: its condition is read at every round."""
    conditions: list[Value] = []

    def body() -> None:
        condition = truthiness(frame, node.test)
        conditions.append(condition)
        if is_const(condition) and not condition.data[0]:
            frame.out.append(Jump(frame.place(node.test), "end", text_of(node.test)))
            frame.state = None
            return
        if frame.state is None:
            return
        if not is_const(condition):
            loop = frame.loops[-1]
            ended = frame.state.copy()
            loop.ends.append(ended)
            end: Tree = [Jump(frame.place(node.test), "end", text_of(node.test))]
            frame.out.append(
                Branch(frame.place(node), negate(condition), end, [], "while", text_of(node.test))
            )
        execute_block(frame, node.body)

    entered = _entered(frame, node.test)
    nodes, after = run_loop(frame, node, body, is_while=True)
    back, loop = after.back, after.loop
    if entered and back is not None and loop.ends:
        loop.ends = [back]  # what was before the first round is no way to leave it
    trip = deciding(conditions[-1], nodes, node, frame.module.filename) if conditions else NO_TAINT
    finish_loop(frame, node, nodes, after, trip, f"while {text_of(node.test)}", None, None)


_PLAIN = (
    ast.Name,
    ast.Constant,
    ast.UnaryOp,
    ast.Not,
    ast.Compare,
    ast.cmpop,
    ast.BoolOp,
    ast.boolop,
    ast.Load,
)


def _entered(frame: Frame, test: ast.expr) -> bool:
    """Whether a loop's condition surely holds before its first round; only names and constants are asked."""
    if frame.state is None or not all(isinstance(part, _PLAIN) for part in ast.walk(test)):
        return False
    condition = truthiness(frame, test)
    return is_const(condition) and bool(condition.data[0])


def run_loop(
    frame: Frame, node: ast.AST, body: Callable[[], None], *, is_while: bool = False
) -> tuple[Tree, Rounds]:
    """Run a loop body to a fixpoint; gives the nodes of the last round and the states around it."""
    before = entry = frame.live
    label = frame.place(node)
    head = _without_constants(frame, entry, node, label)
    entry = head
    back: State | None = None
    loop = LoopFrame(len(frame.path))
    returned = len(frame.returns)
    for round_number in range(MAX_ROUNDS):
        loop = LoopFrame(len(frame.path), node)
        del frame.returns[returned:]  # of earlier rounds, which the last one stands for
        frame.loops.append(loop)
        watched = len(frame.watchers[-1].states) if frame.watchers else 0
        frame.state = head.copy()
        mark = len(frame.path)
        with frame.collecting() as nodes:
            body()
        del frame.path[mark:]
        frame.loops.pop()
        back = frame.state
        for state, taint in loop.continues:
            back = join(state, back, symbol((label, "continue"), taint), taint)
        if back is None:
            break
        following, changed = widen(entry if round_number == 0 else head, back, label)
        if not changed or same(following, head):
            break
        if frame.watchers:
            del frame.watchers[-1].states[watched + 40 :]
        head = following
    frame.state = back
    return nodes, Rounds(before, head, back, loop, returned)


def _without_constants(frame: Frame, state: State, node: ast.AST, label: object) -> State:
    """The state at a loop's head without the exact values of names that the loop assigns."""
    variables = None
    for name in frame.machine.stored_names(node):
        value = state.variables.get(name)
        if value is not None and value.tag == "const" and isinstance(value.data[0], (int, float, str)):
            if variables is None:
                variables = dict(state.variables)
            variables[name] = symbol((label, name))
    return state if variables is None else State(variables, state.heap)


def finish_loop(
    frame: Frame,
    node: Any,
    nodes: Tree,
    after: Rounds,
    trip: Taints,
    text: str,
    iterated: Value | None,
    count: Value | None,
) -> None:
    """Join the ways out of a loop, run its else clause and append its node."""
    before, head, _, loop, returned = after
    label = frame.place(node)
    is_while = isinstance(node, ast.While)
    if loop.ends if is_while else count is None or not is_const(count):
        given_in_round(frame, returned, loop.path_length, label, trip)
    normal: State | None
    if is_while:
        normal = None
        for state in loop.ends:
            normal = join(normal, state, symbol((label, "end")))
    else:
        normal = head.copy()
    frame.state = normal
    with frame.collecting() as else_nodes:
        if normal is not None:
            returned = len(frame.returns)
            execute_block(frame, node.orelse)
            if loop.breaks:
                why = union(*(taint for _, taint in loop.breaks))
                given_inside(frame, returned, loop.path_length, symbol((label, "no break"), why))
    result = frame.state
    for state, taint in loop.breaks:
        result = join(state, result, symbol((label, "break"), taint), taint)
    early = union(trip, *(taint for _, taint in loop.breaks))
    frame.state = taint_changed(result, before, early) if early and result is not None else result
    memory = union(loop.last, frozenset(t for t in trip if t.text == OF_MEMORY)) if is_while else loop.last
    if memory and frame.state is not None:
        for name in frame.machine.stored_names(node) & frame.state.variables.keys():
            value = frame.state.variables[name]
            frame.state.variables[name] = retaint(value, union(value.taint, memory), value.trip)
    if nodes or else_nodes:
        frame.out.append(
            Loop(
                label,
                nodes,
                else_nodes,
                trip,
                "while" if is_while else "for",
                text,
                iterated=iterated,
                count=count,
            )
        )


def taint_changed(state: State, before: State, why: Taints) -> State:
    """What a loop has changed that ranks leave in different rounds is rank-varying after it."""

    def changed(old: Mapping[str, Value], new: dict[str, Value]) -> dict[str, Value]:
        return {
            name: value if old.get(name) is value else retaint(value, union(value.taint, why), value.trip)
            for name, value in new.items()
        }

    heap = state.heap.copy()
    for object_id, fields in before.heap.differing(state.heap):
        heap[object_id] = changed(before.heap.fields(object_id), fields)
    return State(changed(before.variables, state.variables), heap)


def _for_over_generator(frame: Frame, node: ast.For | ast.AsyncFor, behind: Behind) -> None:
    """A for loop over a project generator: the body runs at each yield."""

    def body(value: Value) -> None:
        assign(frame, node.target, behind.item(value))
        execute_block(frame, node.body)

    if not consume(frame, node, behind.generator, body, text_of(node.iter)):
        _opaque_for(frame, node, behind)
        return
    if frame.state is not None:
        execute_block(frame, node.orelse)


def consume(frame: Frame, node: ast.AST, generator: Value, body: Callable[[Value], None], text: str) -> bool:
    """Run a project generator to its end, with ``body`` at each yield; False where it is not followed."""
    from .following import hide
    from .machine import BudgetExceeded, FollowExceeded
    from .parameters import bind_arguments

    info, closure, receiver, args, kwargs = generator.data
    machine = frame.machine
    before = frame.live.copy()
    if info in machine.stack or len(machine.stack) > 8:
        return False
    inner = Frame(machine, info.module, info, State({}, frame.live.heap), frame.depth + 1, enclosing=closure)
    if closure is None and info.parent is not None:
        inner.enclosing = machine.enclosing_frame(info.parent)
    inner.caller = frame
    bind_arguments(inner, info, receiver, list(args), dict(kwargs), False)
    loop = LoopFrame(len(frame.path))
    frame.loops.append(loop)
    inner.yield_hook = _at_yield(frame, node, loop, body, info)
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
        frame.loops.pop()
    if generator.key in machine.kept:
        nodes = ends_early(nodes, machine.kept[generator.key])
    _, state = return_value(inner, inner.place(info.node))
    if frame.state is not None and state is not None:
        frame.state = State(frame.state.variables, state.heap)
    for broken, taint in loop.breaks:
        frame.state = join(broken, frame.state, symbol((frame.place(node), "break"), taint), taint)
    early = union(*(taint for _, taint in loop.breaks))
    if early and frame.state is not None:
        frame.state = taint_changed(frame.state, before, early)
    if nodes:
        frame.out.append(Call(frame.place(node), info.qualname, nodes, text, "generator"))
    if out_of_budget:
        raise BudgetExceeded
    return True


def _at_yield(
    frame: Frame, node: ast.AST, loop: LoopFrame, body: Callable[[Value], None], info: FunctionInfo
) -> YieldHook:
    """What runs in the consumer while the generator is suspended."""
    machine = frame.machine

    def hook(running: Frame, value: Value, where: ast.AST) -> Value:
        frame.state = State(frame.live.variables if frame.state else {}, running.live.heap)
        first = frame.state.copy()
        machine.stack.remove(info)
        try:
            returned = len(frame.returns)
            with frame.collecting() as nodes:
                body(value)
            given_in_round(frame, returned, loop.path_length, frame.place(node), running.path_taint())
        finally:
            machine.stack.append(info)
        running.out.append(Yielded(frame.place(node), nodes, "for"))
        for state, taint in loop.continues:
            frame.state = join(state, frame.state, symbol(("continue", frame.place(node)), taint), taint)
        loop.continues.clear()
        if frame.state is None:
            running.state = None if not loop.breaks else running.state
            frame.state = first
        else:
            frame.state, _ = widen(first, frame.state, frame.place(node))
            if running.state is not None:
                running.state = State(running.state.variables, frame.state.heap)
        return NONE

    return hook


def _opaque_for(frame: Frame, node: ast.For | ast.AsyncFor, behind: Behind) -> None:
    iterated = behind.generator

    def body() -> None:
        assign(frame, node.target, behind.item(symbol(("element", frame.place(node)), iterated.taint)))
        execute_block(frame, node.body)

    nodes, after = run_loop(frame, node, body)
    finish_loop(frame, node, nodes, after, NO_TAINT, f"for {text_of(node.target)}", iterated, None)


def run_comprehension(frame: Frame, node: Any) -> Value:
    """A comprehension or generator expression: loops with the element as body."""
    from .comparisons import logic
    from .containers import REST, allocate, fields_of

    kinds = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict", ast.GeneratorExp: "list"}
    saved = dict(frame.live.variables)
    result: list[Value] = []
    trip: list[Taints] = []
    order: list[Taints] = []
    rule: list[Value] = []

    def level(position: int) -> None:
        if position == len(node.generators):
            if isinstance(node, ast.DictComp):
                key = evaluate(frame, node.key)
                order.append(frozenset(order_taint(key)))
                if not _renews(node):
                    trip.append(distinct("set", key))
                result.append(evaluate(frame, node.value))
            else:
                result.append(evaluate(frame, node.elt))
                trip.append(distinct(kinds[type(node)], result[-1]))
            return
        comprehension = node.generators[position]
        iterated = with_length(frame, evaluate(frame, comprehension.iter))
        iterated = iterator_of(frame, iterated, comprehension.iter)

        def each(item: Value) -> None:
            assign(frame, comprehension.target, item)
            conditions = [truthiness(frame, test) for test in comprehension.ifs]
            trip.append(left_over(frame, iterated, comprehension))
            rule[:] = [iterated, item, logic("and", [TRUE, *conditions])]
            with frame.collecting() as inner:
                level(position + 1)
            for test, condition in zip(reversed(comprehension.ifs), reversed(conditions), strict=True):
                trip.append(frozenset(t for t in condition.taint))
                if inner and not is_const(condition):
                    inner = [Branch(frame.place(test), condition, inner, [], "if", text_of(test))]
            frame.out.extend(inner)

        behind = generator_behind(frame, iterated, comprehension.iter)
        if behind is not None and consume(
            frame, node, behind.generator, lambda value: each(behind.item(value)), text_of(node)
        ):
            return
        own = order_of(frame, iterated)
        rounds = trip_of(frame, iterated, own)
        trip.append(rounds)
        item = element_of(frame, iterated, comprehension.iter)
        with frame.collecting() as nodes:
            each(item)
        if nodes:
            loop = Loop(
                frame.place(node),
                nodes,
                [],
                rounds,
                "comprehension",
                f"for {text_of(comprehension.target)} in {text_of(comprehension.iter)}",
                iterated=iterated,
            )
            loop.order = (*sorted(own), *order_taint(item))
            frame.out.append(loop)

    level(0)
    if frame.state is not None:
        frame.state.variables = saved
    element = result[-1] if result else symbol(("element", frame.place(node)))
    length = union(*trip) if trip else NO_TAINT
    length = frozenset(t for t in length if t.kind != "synced")
    made = allocate(frame, kinds[type(node)], {REST: element}, length, node)
    if len(node.generators) == 1 and not isinstance(node, ast.DictComp) and rule:
        frame.machine.made_by_rule[made.data[0]] = (fields_of(frame, made), (*rule, element))
    return retaint(made, union(made.taint, *order), made.trip) if order else made


def _renews(node: ast.DictComp) -> bool:
    """``{key: 0 for key in totals}``: the keys of another mapping, as a rule, each of which comes once."""
    return unparse(node.generators[-1].target) == unparse(node.key)


def constant_condition(value: Value) -> bool | None:
    """The truth of a constant condition."""
    if value.key == TRUE.key:
        return True
    return False if value.key == FALSE.key else None
