"""Functions as values: decorators, lambdas, nested functions and their closures."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..values.value import Value, symbol
from .caches import CACHES, TIMED, communicates
from .frame import Frame
from .state import State

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from .machine import Machine

_TRANSPARENT = frozenset(
    {"staticmethod", "classmethod", "property", "abstractmethod", "overload", "override", "cached_property"}
)


def function_value(info: FunctionInfo, closure: Frame | None) -> Value:
    """A plain function value."""
    return Value("func", (info, closure, None), key=("func", id(info), id(closure) if closure else None))


def lambda_value(frame: Frame, node: ast.Lambda) -> Value:
    """The function that a lambda makes; its defaults are computed now."""
    for default in (*node.args.defaults, *node.args.kw_defaults):
        if default is not None and not isinstance(default, ast.Constant):
            from .expressions import evaluate

            frame.defaults[id(default)] = evaluate(frame, default)
    return function_value(frame.module.lambda_for(node, frame.function), frame)


def define_function(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """The value that a ``def`` statement binds, decorators applied."""
    info = frame.module.function_for(node)
    closure = frame if frame.function is not None else None
    return apply_decorators(frame, info, function_value(info, closure))


def decorated_value(frame: Frame, info: FunctionInfo) -> Value:
    """A module-level function or method with its decorators applied; cached."""
    machine = frame.machine
    if not info.decorators:
        closure = machine.enclosing_frame(info.parent) if info.parent is not None else None
        return function_value(info, closure)
    key = ("decorated", str(id(info)))
    cached = machine.global_cache.get(key)
    if cached is not None:
        return cached
    if key in machine.global_active:
        return function_value(info, None)
    machine.global_active.add(key)
    try:
        apart = Frame(machine, info.module, None, State({}, machine.template_heap), frame.depth + 1)
        value = apply_decorators(apart, info, function_value(info, None))
    finally:
        machine.global_active.discard(key)
    machine.global_cache[key] = value
    return value


def apply_decorators(frame: Frame, info: FunctionInfo, value: Value) -> Value:
    """Apply a function's decorators, innermost first; unknown ones are taken to change nothing."""
    for decorator in reversed(info.decorators):
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        last = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
        if last in _TRANSPARENT or last in ("setter", "getter", "deleter"):
            continue
        value = _apply_decorator(frame, decorator, value)
    return value


def _apply_decorator(frame: Frame, decorator: ast.expr, function: Value) -> Value:
    from .calls import call_value
    from .expressions import evaluate, text_of

    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    value = evaluate(frame, target)
    configured = frame.machine.configured(value)
    if configured == "rank-local":
        return Value("wrapped", ("rank-local", function, text_of(decorator)))
    if value.tag == "ext":
        cache = facts.canonical(value.data[0])
        if cache in CACHES and communicates(frame, function):
            kind = "cached for a time" if cache in TIMED else "cached"
            return Value("wrapped", (kind, function, text_of(decorator)))
        return _library_decorator(frame, value.data[0], decorator, function)
    if value.tag == "bound":
        fact = facts.method(value.data[0].data[0], value.data[1]) if value.data[0].tag == "extobj" else None
        if fact is not None and fact.main_only:
            return Value("wrapped", (f"main-only:{fact.main_only}", function, text_of(decorator)))
        return function
    if value.tag in ("func", "class", "obj") and frame.depth < 6:
        with frame.collecting():
            if isinstance(decorator, ast.Call):
                value = evaluate(frame, decorator)
            result = call_value(frame, value, [function], {}, decorator)
        if result.tag in ("func", "wrapped", "partial") or _is_called(frame, result):
            return result
    return function


def _is_called(frame: Frame, value: Value) -> bool:
    """Whether a value is an object of a class of the project with a ``__call__``."""
    cls = frame.machine.objects.info(value).cls if value.tag == "obj" else None
    return cls is not None and cls.find_method("__call__") is not None


def _library_decorator(frame: Frame, qualname: str, decorator: ast.expr, function: Value) -> Value:
    from .expressions import evaluate, text_of

    name = facts.canonical(qualname)
    if name == "contextlib.contextmanager" or name == "contextlib.asynccontextmanager":
        return Value("wrapped", ("contextmanager", function, text_of(decorator)))
    if name == "spmdguard.rank_local":
        only = ""
        if isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                if keyword.arg == "only" and isinstance(keyword.value, ast.Constant):
                    only = str(keyword.value.value)
        inner = Value("wrapped", ("rank-local", function, text_of(decorator)))
        if only in ("main", "local_main"):
            return Value("wrapped", (f"main-only:{only}", inner, text_of(decorator)))
        return inner
    if name == "spmdguard.collective":
        return Value("wrapped", ("collective", function, text_of(decorator)))
    fact = facts.function(qualname)
    if fact is not None and fact.main_only and fact.wraps in ("decorator", "call", ""):
        return Value("wrapped", (f"main-only:{fact.main_only}", function, text_of(decorator)))
    later = fact.afterwards if fact is not None else ""
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) and later else ():
        if keyword.arg == later:
            given = evaluate(frame, keyword.value)
            return Value("wrapped", ("afterwards", function, later, given))
    return function


def main_only(frame: Frame, info: FunctionInfo) -> tuple[str, ast.expr] | None:
    """Which ranks a function's own decorators let in ("main", "local_main"), and the decorator that does."""
    from .expressions import text_of

    if not info.decorators:
        return None
    value = decorated_value(frame, info)
    while value.tag == "wrapped":
        kind, inner, text = value.data[:3]
        if kind.startswith("main-only:"):
            found = next((d for d in info.decorators if text_of(d) == text), info.decorators[0])
            return kind.partition(":")[2], found
        value = inner
    return None


def closure_frame(machine: Machine, function: FunctionInfo) -> Frame:
    """A frame standing for a finished activation of ``function``: what a nested function sees of it."""
    from .parameters import bind_symbolic

    frame = Frame(machine, function.module, function, State({}), 1)
    if function.parent is not None:
        frame.enclosing = closure_frame(machine, function.parent)
    bind_symbolic(frame, function)
    assert frame.state is not None
    for name, info in function.nested_functions.items():
        frame.state.variables[name] = function_value(info, frame)
    _simple_definitions(frame, function)
    return frame


def _simple_definitions(frame: Frame, function: FunctionInfo) -> None:
    """Evaluate the straight-line assignments of a parent, so that its children know its rank and groups."""
    from .assignment import assign
    from .expressions import evaluate
    from .machine import BudgetExceeded, FollowExceeded

    machine = frame.machine
    key = id(function)
    if key in machine.template_active or frame.depth > 4:
        return
    machine.template_active.add(key)
    try:
        with frame.collecting():
            for statement in function.body:
                if isinstance(statement, ast.Assign) and isinstance(
                    statement.value,
                    (ast.Call, ast.Compare, ast.Attribute, ast.Name, ast.BoolOp, ast.Constant),
                ):
                    value = evaluate(frame, statement.value)
                    for target in statement.targets:
                        assign(frame, target, value)
    except (BudgetExceeded, FollowExceeded):
        pass
    finally:
        machine.template_active.discard(key)


def unknown_result(frame: Frame, node: ast.AST, label: str) -> Value:
    """An opaque result."""
    return symbol((label, frame.place(node)))
