"""What the other methods of a class put into a container that it holds, as far as this rank's own data decides it.

Method: each method that fills the field, and does not communicate, is read once on symbolic parameters; what then
stands in the field may vary in number for the reasons found there. Hooks that a framework calls with a batch are read
for what they put there too: at the end of an epoch it is what this rank's own batches have left. Cost: one short
reading per method and field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..facts.conventions import BATCHES
from ..values.value import NO_TAINT, Taints, Value, symbol, union
from .contents import REST, is_container, structure, whole
from .frame import Frame
from .queues import filled_in, filling_methods
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
        cache[key] = union(NO_TAINT, *(_after(frame, method, name, held) for method in methods))
    return cache[key]


def fill_from_hooks(frame: Frame, cls: ClassInfo, name: str, held: Value) -> None:
    """Give a container in a field the contents that hooks of a framework put there out of this rank's batches."""
    from .containers import fields_of

    if frame.state is None or fields_of(frame, held):
        return
    cache = frame.machine.queues
    key = (id(cls), f"{name} contents")
    if key not in cache:
        hooks = [method for method in filled_in(frame, cls, name) if _gets_batches(method)][:MAX_METHODS]
        if not hooks or any(method in frame.machine.stack for method in hooks):
            return
        cache[key] = NO_TAINT
        cache[key] = union(NO_TAINT, *(_contents_after(frame, method, name, held) for method in hooks))
    if cache[key]:
        frame.live.set_field(held.data[0], REST, symbol(("held", cls.full_name, name), cache[key]))


def _gets_batches(method: FunctionInfo) -> bool:
    bases = method.cls.external_bases() if method.cls is not None else []
    hook = facts.hook_parameters(bases, method.name) if bases else None
    return hook is not None and ("data" in hook or any(p.name in BATCHES for p in method.params))


def _contents_after(frame: Frame, method: FunctionInfo, name: str, held: Value) -> Taints:
    inner, found = _run(frame, method, name, held)
    if found is None:
        return NO_TAINT
    return frozenset(taint for taint in whole(inner, found).taint if taint.kind == "data")


def _after(frame: Frame, method: FunctionInfo, name: str, held: Value) -> Taints:
    inner, found = _run(frame, method, name, held)
    if found is None:
        return NO_TAINT
    return frozenset(taint for taint in structure(inner, found) if taint.kind in _OWN)


def _run(frame: Frame, method: FunctionInfo, name: str, held: Value) -> tuple[Frame, Value | None]:
    """Read a method on symbolic parameters: its frame, and the container that then stands in the field."""
    from .machine import BudgetExceeded, FollowExceeded, lines_of
    from .outcomes import return_value
    from .parameters import bind_symbolic
    from .statements import execute_block

    machine = frame.machine
    inner = Frame(machine, method.module, method, State({}, machine.template_heap.copy()), frame.depth + 1)
    if lines_of(method) > MAX_LINES or len(machine.stack) > 8:
        return inner, None
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
    inner.state = state
    found = state.field(receiver.data[0], name) if state is not None else None
    return inner, found if found is not None and is_container(inner, found) else None
