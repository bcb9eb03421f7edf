"""Objects behind module-level names that functions change in place: ``STATE["stop"] = True``.

They stand on the heap from the beginning of a root of their module, as its top level has made them, so that where only
some ranks change one, the others are known to have what it held before.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ..names.bindings import AssignBinding
from .frame import Frame
from .lookup import global_value

if TYPE_CHECKING:
    from ..names.modules import Module

_CHANGED = re.compile(
    r"^[ \t]+(?:[^\n]*:[ \t]*)?(\w+)(?:\[[^\n\]]*\]|\.\w+)[ \t]*(?:[-+*/|&]|//)?=(?!=)", re.MULTILINE
)
_MADE = (ast.Dict, ast.List, ast.Set, ast.Call)


def put_shared(frame: Frame) -> None:
    """Put the objects of the frame's module that its functions change on the heap."""
    machine = frame.machine
    for name in changed_names(frame, frame.module):
        value = global_value(frame, frame.module, name)
        fields = machine.template_heap.get(value.data[0]) if value.tag == "obj" else None
        if fields is not None and value.data[0] not in frame.live.heap:
            frame.live.heap[value.data[0]] = fields
            machine.calls.shared.add(value.data[0])


def changed_names(frame: Frame, module: Module) -> tuple[str, ...]:
    """The module-level names behind which some function changes an object; remembered."""
    known = frame.machine.changed_names.get(id(module))
    if known is None:
        known = frame.machine.changed_names[id(module)] = tuple(_changed(module))
    return known


def _changed(module: Module) -> list[str]:
    found: list[str] = []
    for name in dict.fromkeys(_CHANGED.findall(module.source.text)):
        bindings = module.bindings.get(name, [])
        made = [b for b in bindings if isinstance(b, AssignBinding) and isinstance(b.value, _MADE)]
        if len(bindings) == 1 and made and name not in module.global_assignments:
            found.append(name)
    return found
