"""What the other methods of a class put into a container that it holds, as far as this rank's own data decides it.

Method: each method that fills the field, and does not communicate, is read once on symbolic parameters; what then
stands in the field may vary in number for the reasons found there. Cost: one short reading per method and field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.value import NO_TAINT, Taints, Value, union
from .contents import is_container, structure
from .frame import Frame
from .queues import filling_methods
from .state import State

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo

MAX_LINES = 60
MAX_STEPS = 600
MAX_METHODS = 4
_OWN = frozenset({"data", "random", "time"})


def filled_by_data(frame: Frame, cls: ClassInfo, name: str, held: Value) -> Taints:
    """Why a container in a field may hold another number of items on each rank, by what its class puts there."""
    cache = frame.machine.queues
    key = (id(cls), f"{name} filled")
    if key not in cache:
        methods = filling_methods(frame, cls, name)[:MAX_METHODS]
        if any(method in frame.machine.stack for method in methods):
            return NO_TAINT  # what it puts there stands in its own state
        cache[key] = NO_TAINT
        cache[key] = union(NO_TAINT, *(_after(frame, cls, method, name, held) for method in methods))
    return cache[key]


def _after(frame: Frame, cls: ClassInfo, method: FunctionInfo, name: str, held: Value) -> Taints:
    from .machine import BudgetExceeded, FollowExceeded, lines_of, return_value
    from .parameters import bind_symbolic
    from .statements import execute_block

    machine = frame.machine
    if lines_of(method) > MAX_LINES or len(machine.stack) > 8:
        return NO_TAINT
    inner = Frame(machine, method.module, method, State({}, machine.template_heap.copy()), frame.depth + 1)
    bind_symbolic(inner, method)
    assert method.self_name is not None
    receiver = inner.live.variables[method.self_name]
    inner.live.set_field(receiver.data[0], name, held)
    saved = machine.steps_left, machine.follow_left, machine.truncated
    machine.steps_left = min(saved[0], MAX_STEPS)
    machine.stack.append(method)
    try:
        with inner.collecting():
            execute_block(inner, method.body)
        _, state = return_value(inner, inner.place(method.node))
    except (BudgetExceeded, FollowExceeded):
        state = inner.state
    finally:
        machine.stack.pop()
        machine.steps_left, machine.follow_left, machine.truncated = saved
    if state is None:
        return NO_TAINT
    inner.state = state
    found = state.field(receiver.data[0], name)
    if found is None or not is_container(inner, found):
        return NO_TAINT
    return frozenset(taint for taint in structure(inner, found) if taint.kind in _OWN)
