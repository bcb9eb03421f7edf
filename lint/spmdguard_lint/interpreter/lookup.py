"""What a name denotes: local, closure, module level, import, built-in."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..names.bindings import AssignBinding
from ..names.symbols import (
    ClassSymbol,
    ExternalSymbol,
    FunctionSymbol,
    ModuleSymbol,
    Symbol,
    VariableSymbol,
)
from ..values.evaluate import RANKS
from ..values.value import NONE, SET_LATER, Taint, Value, choice, external, retaint, symbol, union
from .frame import Frame
from .state import CELL, State

if TYPE_CHECKING:
    from ..names.modules import Module


def lookup_name(frame: Frame, name: str, node: ast.AST) -> Value:
    """The value of a bare name."""
    if frame.state is not None:
        found = _shared(frame, frame, name) or frame.state.variables.get(name)
        if found is not None and not _stale(frame, found, name):
            return found
    outer = frame.enclosing
    while outer is not None:
        if outer.state is not None:
            found = _shared(frame, outer, name) or outer.state.variables.get(name)
            if found is not None:
                return found
        imported = local_import(outer, name)
        if imported is not None:
            return imported
        outer = outer.enclosing
    imported = local_import(frame, name)
    if imported is not None:
        return imported
    function = frame.function
    if function is not None and name in function.local_names:
        return unknown_local(frame, name, node)
    return symbol_value(frame, frame.machine.resolve(frame.module, name), name)


def _shared(frame: Frame, owner: Frame, name: str) -> Value | None:
    """A variable that other functions than its own assign, as they have left it."""
    function = owner.function
    if function is None:
        return global_cell(frame, owner.module, name)
    if name not in function.kept_elsewhere:
        return None
    if name in function.global_names and owner is frame:
        return global_cell(frame, owner.module, name)
    return frame.live.field(owner.cell(name), "value") if name in function.shared_names else None


def global_cell(frame: Frame, module: Module, name: str) -> Value | None:
    """A module-level variable as functions have left it."""
    return frame.live.field((CELL, module.filename, name), "value")


def unknown_local(frame: Frame, name: str, node: ast.AST) -> Value:
    """A local name without a known value: what its name says by convention, if anything."""
    from .attributes import conventional

    return conventional(frame, name, node) or symbol(("local", frame.module.filename, name))


def _stale(frame: Frame, value: Value, name: str) -> bool:
    """Whether a module-level constant may have been replaced by a function that calls it ``global``."""
    return value.tag == "const" and frame.function is None and name in frame.module.global_assignments


def local_import(frame: Frame, name: str) -> Value | None:
    """A name that an import statement inside the function binds."""
    function = frame.function
    if function is None:
        return None
    target = function.scope.imports.get(name)
    if target is None:
        return None
    return symbol_value(frame, frame.machine.project.resolve_import(frame.module, target), target)


def symbol_value(frame: Frame, found: Symbol, name: str) -> Value:
    """The value that a resolved symbol stands for."""
    if isinstance(found, ExternalSymbol):
        return external_value(frame, found.qualname)
    if isinstance(found, FunctionSymbol):
        from .closures import decorated_value

        return decorated_value(frame, found.info)
    if isinstance(found, ClassSymbol):
        return Value("class", (found.info,))
    if isinstance(found, ModuleSymbol):
        return Value("module", (found.module,))
    if isinstance(found, VariableSymbol):
        return global_value(frame, found.module, found.name)
    return symbol(("unknown", name))


def external_value(frame: Frame, qualname: str) -> Value:
    """An external name; a known constant where the tables know it."""
    fact = facts.constant(qualname)
    if fact is not None:
        from .facts_apply import result_of_fact

        return result_of_fact(frame, fact, qualname, None, [], {}, None)
    return external(qualname)


def global_value(frame: Frame, module: Module, name: str) -> Value:
    """A module-level variable, from its last real assignment, evaluated apart from any run of the module."""
    machine = frame.machine
    key = (module.filename, name)
    written = global_cell(frame, module, name)
    if written is not None:
        return written
    if machine.module_frame is not None and machine.module_frame.module is module:
        state = machine.module_frame.state
        found = state.variables.get(name) if state is not None else None
        if found is not None and not _stale(machine.module_frame, found, name):
            return found
    cached = machine.global_cache.get(key)
    if cached is not None:
        return cached
    if key in machine.global_active:
        return symbol(("global", *key))
    machine.global_active.add(key)
    try:
        value = _evaluate_global(frame, module, name)
    finally:
        machine.global_active.discard(key)
    machine.global_cache[key] = value
    return value


def _evaluate_global(frame: Frame, module: Module, name: str) -> Value:
    from .expressions import evaluate

    bindings = [b for b in module.bindings.get(name, []) if isinstance(b, AssignBinding)]
    real = [b for b in bindings if not b.fallback] or bindings
    for binding in reversed(real):
        if binding.value is not None:
            apart = Frame(
                frame.machine, module, None, State({}, frame.machine.template_heap), frame.depth + 1
            )
            value = evaluate(apart, binding.value)
            if name in module.global_assignments:
                return _rebound_global(frame, module, name, value)
            if len(real) > 1 and value.tag == "const":
                return symbol(("global", module.filename, name), value.taint)
            return value
    from .attributes import conventional

    node = real[-1].target if real else module.outline
    return conventional(frame, name, node) or symbol(("global", module.filename, name))


def _rebound_global(frame: Frame, module: Module, name: str, first: Value) -> Value:
    """A module-level variable that functions assign to under ``global``: any of the values it may have."""
    from .expressions import evaluate
    from .signals import installed_in

    if _is_counter(module, name, first):
        return first
    label = ("global", module.filename, name)
    values: list[Value] = []
    taint = first.taint
    for assignment in module.global_assignments[name]:
        function = assignment.function
        apart = Frame(
            frame.machine, module, function, State({}, frame.machine.template_heap), frame.depth + 1
        )
        if function.name in installed_in(frame, module):
            place = apart.place(assignment.node)
            taint = union(taint, frozenset({Taint("signal", place, f"`{name}` set in `{function.name}`")}))
        if assignment.value is None:
            continue
        with apart.collecting():
            values.append(evaluate(apart, assignment.value))
    taint = union(taint, *(value.taint for value in values))
    known = [value for value in values if value.tag not in ("sym", "expr", "const")]
    if first.key == NONE.key and len(known) == 1:
        return retaint(known[0], taint, known[0].trip)
    others = [value for value in values if value.key != first.key]
    if first.tag == "const" and len(others) == 1 and others[0].tag in RANKS:
        return choice(symbol((SET_LATER, *label)), others[0], first)
    return symbol(label, taint)


def _is_counter(module: Module, name: str, first: Value) -> bool:
    """Whether a variable counts what is under way: it begins at a number, goes up by one and comes down by one.

    A function that is read on its own is called where nothing is under way.
    """
    steps = [assignment.node for assignment in module.global_assignments[name]]
    if first.tag != "const" or type(first.data[0]) is not int:
        return False
    by_one = all(
        isinstance(step, ast.AugAssign) and isinstance(step.value, ast.Constant) and step.value.value == 1
        for step in steps
    )
    ways = {type(step.op) for step in steps if isinstance(step, ast.AugAssign)}
    return by_one and ways == {ast.Add, ast.Sub}


def raised_class(frame: Frame, name: str) -> Value:
    """The exception class of a name, as seen in a frame's module."""
    return symbol_value(frame, frame.machine.resolve(frame.module, name), name)
