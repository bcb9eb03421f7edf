"""Parameters: binding of arguments, symbolic parameters of roots, and symbolic instances of classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts import conventions
from ..facts import lookup as facts
from ..names.bindings import ImportBinding
from ..names.dotted import called_name
from ..names.symbols import ClassSymbol, ExternalSymbol
from ..source.walking import walk
from ..values.evaluate import RANKS
from ..values.value import NO_TAINT, NONE, SET_LATER, TRUE, Taint, Value, choice, is_const, symbol, union
from . import attributes
from .frame import Frame
from .state import State

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo
    from ..names.modules import Module


def bind_arguments(
    frame: Frame,
    function: FunctionInfo,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    spread: bool,
) -> None:
    """Bind call arguments to the parameters of ``function`` in its new frame."""
    variables = frame.live.variables
    positional = list(args)
    if receiver is not None:
        positional.insert(0, receiver)
    for param in function.params:
        if param.kind in ("positional-only", "positional"):
            if positional:
                variables[param.name] = positional.pop(0)
                continue
        elif param.kind == "vararg":
            from .expressions import tuple_value

            variables[param.name] = tuple_value(positional)
            positional = []
            continue
        elif param.kind == "kwarg":
            variables[param.name] = _rest_dict(frame, function, kwargs)
            continue
        if param.name in kwargs:
            variables[param.name] = kwargs.pop(param.name)
        elif param.default is not None and not spread:
            variables[param.name] = default_value(frame, function, param.default)
        else:
            variables[param.name] = symbolic_parameter(
                frame, function, param.name, param.annotation, param.default
            )


def _rest_dict(frame: Frame, function: FunctionInfo, kwargs: dict[str, Value]) -> Value:
    object_id = ("kwargs", function.full_name, frame.depth)
    value = frame.machine.objects.make(object_id, "dict", trip=NO_TAINT)
    for name, item in kwargs.items():
        frame.live.set_field(object_id, repr(name), item)
    kwargs.clear()
    return value


def default_value(frame: Frame, function: FunctionInfo, default: ast.expr) -> Value:
    """The value of a parameter's default, evaluated in the module."""
    if isinstance(default, ast.Constant):
        from .expressions import evaluate

        return evaluate(frame, default)
    known = None if frame.enclosing is None else frame.enclosing.defaults.get(id(default))
    if known is not None:
        return known
    from .expressions import evaluate

    apart = Frame(frame.machine, function.module, None, State({}, frame.live.heap), frame.depth + 1)
    with apart.collecting():
        return evaluate(apart, default)


def bind_symbolic(frame: Frame, function: FunctionInfo) -> None:
    """Bind symbolic values to all parameters: what annotations, defaults and names say of them."""
    variables = frame.live.variables
    hook = _hook_types(function)
    position = 0
    for index, param in enumerate(function.params):
        if index == 0 and param.name == function.self_name and function.cls is not None:
            if function.is_classmethod:
                variables[param.name] = Value("class", (function.cls,))
            else:
                variables[param.name] = symbolic_self(frame, function.cls)
                frame.self_value = variables[param.name]
            continue
        hooked = hook[position] if hook is not None and position < len(hook) else ""
        position += 1
        if hook is not None and not hooked and param.name in conventions.BATCHES:
            hooked = "data"
        if hooked:
            variables[param.name] = hook_parameter(frame, function, param.name, hooked)
        else:
            variables[param.name] = symbolic_parameter(
                frame, function, param.name, param.annotation, param.default
            )
            if hook is not None and param.kind == "kwarg":
                variables[param.name] = _hook_keywords(frame, function, variables[param.name])


def _hook_types(function: FunctionInfo) -> tuple[str, ...] | None:
    if function.cls is None:
        return None
    bases = function.cls.external_bases()
    return facts.hook_parameters(bases, function.name) if bases else None


def hook_parameter(frame: Frame, function: FunctionInfo, name: str, type_name: str) -> Value:
    """A parameter that the framework passes to a hook: per-rank data, or an instance of a known type."""
    label = ("param", function.full_name, name)
    if type_name == "data":
        return symbol(label, frozenset({Taint("data", frame.place(function.node), f"`{name}`", "likely")}))
    return Value("extobj", (type_name, label, None))


def _hook_keywords(frame: Frame, function: FunctionInfo, unknown: Value) -> Value:
    """The ``**kwargs`` of a hook, where it asks by name for what the framework holds: a dict of known instances."""
    asked = {node.value for node in walk(function.node) if isinstance(node, ast.Constant)}
    bases = function.cls.external_bases() if function.cls is not None else []
    known = {name: type_name for name, type_name in facts.attribute_types(bases) if name in asked}
    if not known:
        return unknown
    object_id = ("kwargs", function.full_name, 0)
    for name, type_name in known.items():
        label = ("param", function.full_name, name)
        frame.live.set_field(object_id, repr(name), Value("extobj", (type_name, label, None)))
    frame.live.set_field(object_id, "*", unknown)
    return frame.machine.objects.make(object_id, "dict", trip=NO_TAINT)


def symbolic_parameter(
    frame: Frame, function: FunctionInfo, name: str, annotation: ast.expr | None, default: ast.expr | None
) -> Value:
    """A parameter of which nothing is known but its annotation, default and name."""
    label = ("param", function.full_name, name)
    typed = annotated_value(frame, function, annotation, label)
    if typed is not None:
        return typed
    held = held_by_convention(function.cls, name, label) if function.cls is not None else None
    if held is None and function.cls is None:
        type_name = facts.type_by_import(name, imported_names(function.module))
        held = Value("extobj", (type_name, label, None)) if type_name is not None else None
    if held is not None:
        return held
    if facts.says_launched(name):
        return TRUE
    fact = facts.conventional_name(name)
    if fact is not None and _default_allows_rank(default):
        from .facts_apply import result_of_fact

        return result_of_fact(frame, fact, name, None, [], {}, function.node)
    if default is not None and isinstance(default, ast.Constant) and default.value is None:
        return symbol(("param-none", function.full_name, name))
    return symbol(label)


def imported_names(module: Module) -> Iterator[str]:
    """The dotted names that a module imports at its top level."""
    for bindings in module.bindings.values():
        yield from (binding.target for binding in bindings if isinstance(binding, ImportBinding))


def held_by_convention(cls: ClassInfo, name: str, label: tuple[str, ...]) -> Value | None:
    """What a name stands for in classes of a framework (``trainer`` in a callback): an instance of a known type."""
    fact = facts.subclass_attribute(cls.external_bases(), name)
    return Value("extobj", (fact.returns, label, None)) if fact is not None and fact.returns else None


def _default_allows_rank(default: ast.expr | None) -> bool:
    """A default like 8 is not a process rank (a LoRA rank is); 0, -1, None and False may be."""
    if default is None:
        return True
    value = default
    if isinstance(value, ast.UnaryOp):
        return True
    return isinstance(value, ast.Constant) and value.value in (0, None, False, True)


def annotated_value(
    frame: Frame, function: FunctionInfo, annotation: ast.expr | None, label: tuple[str, ...]
) -> Value | None:
    """An instance of the annotated class, when it is a project class or a known library type."""
    dotted = annotation_name(annotation)
    if dotted is None:
        return None
    found = frame.machine.resolve(function.module, dotted)
    if isinstance(found, ClassSymbol):
        return symbolic_instance(frame, found.info, label)
    if isinstance(found, ExternalSymbol):
        type_name = facts.constructor(found.qualname)
        if type_name is not None:
            return Value("extobj", (type_name, label, None))
    return None


def annotation_name(annotation: ast.expr | None) -> str | None:
    """The dotted name in an annotation; ``Optional[X]``, ``X | None`` and strings are unwrapped."""
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        text = annotation.value.strip()
        return text if text.replace(".", "").isidentifier() else None
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return annotation_name(annotation.left) or annotation_name(annotation.right)
    if isinstance(annotation, ast.Subscript):
        name = annotation_name(annotation.value)
        if name is not None and name.rpartition(".")[2] in ("Optional", "Annotated", "Union"):
            inner = annotation.slice
            return annotation_name(inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner)
        return None
    if isinstance(annotation, ast.Name):
        return annotation.id
    if isinstance(annotation, ast.Attribute):
        head = annotation_name(annotation.value)
        return None if head is None else f"{head}.{annotation.attr}"
    return None


def symbolic_self(frame: Frame, cls: ClassInfo) -> Value:
    """The receiver of a method that is read on its own."""
    return symbolic_instance(frame, cls, ("self", cls.full_name))


def symbolic_instance(frame: Frame, cls: ClassInfo, label: tuple[str, ...]) -> Value:
    """Some instance of a project class; its fields come from the class's ``__init__`` on symbolic arguments."""
    object_id = ("symbolic", id(cls), *label)
    return frame.machine.objects.make(object_id, "instance", cls, symbolic=True)


def template_field(frame: Frame, receiver: Value, cls: ClassInfo, name: str) -> Value | None:
    """A field as ``__init__`` on symbolic arguments leaves it, joined with what other methods assign."""
    machine = frame.machine
    fields = class_template(frame, cls)
    value = fields.get(name)
    elsewhere = _assigned_elsewhere(frame, cls, name)
    if value is None and elsewhere is None:
        return None
    if value is None:
        value = elsewhere
    elif is_const(value) and elsewhere is not None and elsewhere.tag in RANKS:
        value = choice(symbol((SET_LATER, cls.full_name, name)), elsewhere, value)
    elif elsewhere is not None and machine.objects is not None and elsewhere.taint - value.taint:
        value = symbol(("field", cls.full_name, name), union(value.taint, elsewhere.taint), value.trip)
    elif value.key == NONE.key and elsewhere is None:
        value = held_by_convention(cls, name, ("field", cls.full_name, name)) or value  # set from outside
    elif is_const(value) and elsewhere is not None:
        value = symbol(("field", cls.full_name, name), value.taint)
    return None if value is None else attributes.as_queue(frame, cls, name, value)


def class_template(frame: Frame, cls: ClassInfo) -> dict[str, Value]:
    """The fields of a fresh instance, from interpreting ``__init__`` with symbolic arguments; cached."""
    machine = frame.machine
    key = id(cls)
    known = machine.templates.get(key)
    if known is not None:
        return known
    machine.templates[key] = {}
    init = cls.find_method("__init__")
    fields: dict[str, Value] = {}
    if init is not None:
        fields = _interpret_init(frame, cls, init)
    for owner in reversed(cls.mro()):
        for name, annotation in owner.annotations.items():
            if name not in fields and owner.is_dataclass:
                function = next(iter(owner.methods.values()), None)
                fields[name] = _dataclass_field(frame, owner, name, annotation, function)
    machine.templates[key] = fields
    return fields


def _dataclass_field(
    frame: Frame, cls: ClassInfo, name: str, annotation: ast.expr, function: FunctionInfo | None
) -> Value:
    label = ("field", cls.full_name, name)
    kind = _made_by_factory(cls.class_assignments.get(name))
    if kind:
        return frame.machine.objects.make((kind, *label), kind, trip=NO_TAINT)
    dotted = annotation_name(annotation)
    if dotted is not None:
        found = frame.machine.resolve(cls.module, dotted)
        if isinstance(found, ClassSymbol):
            return symbolic_instance(frame, found.info, label)
        if isinstance(found, ExternalSymbol):
            type_name = facts.constructor(found.qualname)
            if type_name is not None:
                return Value("extobj", (type_name, label, None))
    if facts.says_launched(name):
        return TRUE
    fact = facts.conventional_name(name)
    if fact is not None:
        from .facts_apply import result_of_fact

        return result_of_fact(frame, fact, f"{cls.name}.{name}", None, [], {}, annotation)
    return symbol(label)


_FACTORIES = {
    "dict": "dict",
    "list": "list",
    "set": "set",
    "OrderedDict": "dict",
    "Counter": "dict",
    "deque": "list",
}


_FIELDS = frozenset({"field", "Field", "attrib", "ib"})  # of dataclasses, pydantic and attrs


def field_keywords(default: ast.expr | None) -> dict[str, ast.expr]:
    """The keywords of the call that describes a field; none where the default is another call, or no call at all."""
    if not isinstance(default, ast.Call) or called_name(default) not in _FIELDS:
        return {}
    return {k.arg: k.value for k in default.keywords if k.arg is not None}


def field_factory(default: ast.expr | None) -> ast.expr | None:
    """What makes the default of a dataclass's field (``field(default_factory=f)``, ``attrs.field(factory=f)``)."""
    keywords = field_keywords(default)
    return keywords.get("default_factory", keywords.get("factory"))


def _made_by_factory(default: ast.expr | None) -> str:
    """The kind of container that a dataclass's field begins with (``field(default_factory=dict)``), if it is one."""
    factory = field_factory(default)
    if isinstance(factory, ast.Lambda):
        factory = factory.body
        if isinstance(factory, (ast.Dict, ast.List)):
            return "dict" if isinstance(factory, ast.Dict) else "list"
        if isinstance(factory, ast.Call) and annotation_name(factory.func) in (
            "defaultdict",
            "collections.defaultdict",
        ):
            return "dict"
        factory = factory.func if isinstance(factory, ast.Call) else None
    return _FACTORIES.get((annotation_name(factory) or "").rpartition(".")[2], "")


def _interpret_init(frame: Frame, cls: ClassInfo, init: FunctionInfo) -> dict[str, Value]:
    from .machine import BudgetExceeded, FollowExceeded
    from .statements import execute_block

    machine = frame.machine
    if frame.depth > 8 or len(machine.stack) > 12:
        return {}
    inner = Frame(machine, init.module, init, State({}, machine.template_heap.copy()), frame.depth + 1)
    bind_symbolic(inner, init)
    receiver = symbolic_instance(inner, cls, ("template", cls.full_name))
    if init.self_name:
        inner.live.variables[init.self_name] = receiver
    machine.stack.append(init)
    saved = machine.steps_left
    machine.steps_left = min(saved, 3000)
    before = machine.steps_left
    state = inner.state
    try:
        with inner.collecting():
            execute_block(inner, init.body)
        from .outcomes import return_value

        _, state = return_value(inner, inner.place(init.node))
    except (BudgetExceeded, FollowExceeded):
        state = inner.state
    finally:
        machine.stack.pop()
        machine.steps_left = saved - max(0, before - machine.steps_left) // 4
    if state is None:
        return {}
    for object_id in state.heap.missing(machine.template_heap):
        if object_id != receiver.data[0]:
            machine.template_heap[object_id] = state.heap[object_id]
    return dict(state.heap.fields(receiver.data[0]))


def _assigned_elsewhere(frame: Frame, cls: ClassInfo, name: str) -> Value | None:
    """What methods other than ``__init__`` assign to a field, as far as the expression alone tells."""
    machine = frame.machine
    key = ("elsewhere", f"{id(cls)}.{name}")
    cached = machine.global_cache.get(key)
    if cached is not None:
        return None if cached.key == NONE.key else cached
    if key in machine.global_active:
        return None
    machine.global_active.add(key)
    try:
        found = _join_assignments(frame, cls, name)
    finally:
        machine.global_active.discard(key)
    machine.global_cache[key] = found if found is not None else NONE
    return found


def _join_assignments(frame: Frame, cls: ClassInfo, name: str) -> Value | None:
    from .expressions import evaluate

    result: Value | None = None
    for assignment in cls.find_self_assignments(name):
        function = assignment.function
        if function.name == "__init__":
            continue
        taint = NO_TAINT
        if assignment.value is not None:
            apart = Frame(
                frame.machine, function.module, function, State({}, frame.machine.template_heap.copy()), 9
            )
            bind_symbolic(apart, function)
            with apart.collecting():
                value = evaluate(apart, assignment.value)
            taint = value.taint
            if (result is None or result.key == value.key) and value.tag in (
                "extobj",
                "obj",
                "func",
                "class",
                "ext",
                "tuple",
                *RANKS,
            ):
                result = value
                continue
        if frame.machine.is_signal_handler(cls, function.name):
            place = frame.place(function.node)._replace(filename=function.module.filename)
            taint = union(
                taint, frozenset({Taint("signal", place, f"`self.{name}` set in `{function.name}`")})
            )
        if result is None:
            result = symbol(("field", cls.full_name, name), taint)
        else:
            result = symbol(("field", cls.full_name, name), union(result.taint, taint))
    return result
