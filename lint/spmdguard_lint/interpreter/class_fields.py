"""Fields of classes that the program assigns: ``Tracker.values``, of which the class body gives the first value.

They stand on the heap from the beginning of a run, so that where only some ranks assign one, the others are known to
have what the class body says. Only constants count, and only fields that are not fields of instances as well. Where the
rank decides whether a function is handed to another package, it may assign one later on those ranks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from ..values.value import NONE, Taints, Value, choice, constant, symbol, union
from .frame import Frame

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from .heap import Fields
    from .machine import Machine

_RANK = frozenset({"rank", "group-rank"})
_ASSIGNED = re.compile(r"\.(\w+)(?:\[[^\n\]]*\])?\s*[-+*/|&]?=(?!=)")
_MAX_CALLERS = 6


def first_values(machine: Machine) -> dict[Hashable, Fields]:
    """What the bodies of classes say of the fields that something assigns later, by class."""
    found: dict[Hashable, Fields] = {}
    for module in machine.project.relevant_modules():
        assigned = _assigned(module.source.text)
        for cls in module.all_classes if assigned else ():
            fields = {name: value for name, value in _constants(cls) if _is_assigned(cls, name, assigned)}
            if fields:
                found["class", id(cls)] = fields
    return found


def _assigned(text: str) -> set[tuple[str, str]]:
    """The ``owner.field`` that a text assigns. Owners are looked for behind a match alone: most words are none."""
    found: set[tuple[str, str]] = set()
    for match in _ASSIGNED.finditer(text):
        first = match.start()
        while first and (text[first - 1].isalnum() or text[first - 1] == "_"):
            first -= 1
        if first < match.start():
            found.add((text[first : match.start()], match[1]))
    return found


def _constants(cls: ClassInfo) -> Iterator[tuple[str, Value]]:
    for node in cls.header.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant):
            known = NONE if value.value is None else constant(value.value)
            yield from ((target.id, known) for target in targets if isinstance(target, ast.Name))


def _is_assigned(cls: ClassInfo, name: str, assigned: set[tuple[str, str]]) -> bool:
    if any(not one.function.is_classmethod for one in cls.self_assignments.get(name, ())):
        return False
    return not assigned.isdisjoint({("cls", name), (cls.name, name)})


def assigned_later(frame: Frame, given: list[Value], node: ast.AST) -> None:
    """Functions that another package gets where the rank decides so: the fields of classes that they assign."""
    functions = [value for value in given if value.tag == "func" and _is_of_no_instance(value.data[2])]
    if not functions or frame.state is None or not frame.machine.first_values:
        return
    why = frozenset(t for t in _reasons(frame) if t.kind in _RANK)
    for function in functions if why else ():
        before = frame.state.copy()
        with frame.collecting():
            _run(frame, function, node)
        after, frame.state = frame.state, before
        for object_id, fields in before.heap.differing(after.heap) if after is not None else ():
            if isinstance(object_id, tuple) and object_id[0] == "class":
                ran = symbol(("ran", frame.place(node)), why)
                for name, value in fields.items():
                    old = before.field(object_id, name)
                    before.set_field(object_id, name, value if old is None else choice(ran, value, old))


def _is_of_no_instance(receiver: Value | None) -> bool:
    return receiver is None or receiver.tag == "class"


def _run(frame: Frame, function: Value, node: ast.AST) -> None:
    from .calls import call_value

    place = frame.place(node)
    parameters = function.data[0].params[0 if function.data[2] is None else 1 :]
    given = [symbol(("later", place, param.name)) for param in parameters if param.default is None]
    call_value(frame, function, given, {}, node)


def _reasons(frame: Frame) -> Taints:
    """Why only some ranks come here, in this function and in those that call it."""
    found = frame.path_taint()
    caller = frame.caller
    for _ in range(_MAX_CALLERS):
        if caller is None:
            break
        found = union(found, caller.path_taint())
        caller = caller.caller
    return found
