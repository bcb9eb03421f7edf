"""Read attributes: of project objects and classes, modules, library objects, and unknown receivers."""

from __future__ import annotations

import ast

from ..facts import lookup as facts
from ..names.classes import ClassInfo
from ..names.functions import FunctionInfo
from ..values.value import (
    NO_TAINT,
    NONE,
    TRUE,
    Member,
    Value,
    choice,
    doubted,
    expression,
    is_const,
    is_split,
    retaint,
    symbol,
    union,
)
from . import closures, filling, parameters, queues
from .enums import member_attribute, member_of
from .frame import Frame
from .kinds import DIMENSIONS, of_form
from .lengths import part_of_share
from .nearby import rank_of_nearby
from .partly import note_attribute_use
from .state import State

_OPAQUE = frozenset({"expr", "sym"})
SHAPES = frozenset({"shape", "size", "numel", "nelement"})
UNIFORM_PARTS = frozenset(
    {
        "dtype",
        "device",
        "type",
        "layout",
        "requires_grad",
        "itemsize",
        "is_leaf",
        "placements",
        "names",
        "device_mesh",
    }
) | frozenset({"is_meta", "is_cpu", "is_cuda", "is_mps", "is_xpu", "is_sparse", "is_quantized", "is_nested"})

_SETTINGS = frozenset({"config", "cfg", "hparams"})  # of a model whose parameters are this rank's own part


def read_attribute(frame: Frame, receiver: Value, name: str, node: ast.AST) -> Value:
    """The value of ``receiver.name``; properties of project classes are followed."""
    tag = receiver.tag
    if tag == "ext":
        from .lookup import external_value

        return external_value(frame, f"{receiver.data[0]}.{name}")
    if tag == "module":
        from .lookup import symbol_value

        return symbol_value(frame, frame.machine.resolve(receiver.data[0], name), name)
    if tag == "func":
        written = frame.live.field(("class", id(receiver.data[0])), name)
        if written is not None:
            return written
    if tag == "class":
        return _class_attribute(frame, receiver.data[0], name, node)
    if tag == "obj":
        return _object_attribute(frame, receiver, name, node)
    if tag == "extobj":
        return _library_attribute(frame, receiver, name, node)
    if tag == "super":
        return _super_attribute(frame, receiver, name)
    if is_split(receiver):
        condition, then, orelse = receiver.data
        if then.key == NONE.key or orelse.key == NONE.key:
            present = orelse if then.key == NONE.key else then
            return merge_taint(read_attribute(frame, present, name, node), receiver)
        first = read_attribute(frame, then, name, node)
        second = read_attribute(frame, orelse, name, node)
        result = choice(condition, first, second)
        own = receiver.taint - union(condition.taint, then.taint, orelse.taint)
        if own and first.key != second.key:  # which of them it is
            result = retaint(result, union(result.taint, own), result.trip)
        if {then.tag, orelse.tag} <= _OPAQUE:
            # found here or there, it is mostly the same thing
            return retaint(result, doubted(result.taint, "filesystem"), result.trip)
        return result
    if tag == "const" and isinstance(receiver.data[0], Member):
        found = member_attribute(frame, receiver.data[0], receiver, name, node)
        if found is not None:
            return found
    return unknown_attribute(frame, receiver, name, node)


def attribute_by_name(frame: Frame, receiver: Value, name: Value, node: ast.AST) -> Value | None:
    """``getattr(receiver, name)`` where the name is known, or one of a few."""
    if is_const(name) and isinstance(name.data[0], str):
        return read_attribute(frame, receiver, name.data[0], node)
    if is_split(name):
        condition, then, orelse = name.data
        first, second = (attribute_by_name(frame, receiver, one, node) for one in (then, orelse))
        return None if first is None or second is None else choice(condition, first, second)
    return None


def unknown_attribute(frame: Frame, receiver: Value, name: str, node: ast.AST) -> Value:
    """An attribute of something unknown: what its name says by convention, else an opaque part of the receiver."""
    if receiver.tag in ("sym", "expr", "const", "ite"):
        if facts.says_launched(name) and not receiver.taint:
            return TRUE
        fact = facts.unknown_attribute(name) or facts.conventional_name(name)
        if fact is not None and not receiver.taint:
            from .expressions import text_of
            from .facts_apply import result_of_fact

            return result_of_fact(frame, fact, text_of(node), None, [], {}, node)
        nearby = rank_of_nearby(frame, receiver, name, node)
        if nearby is not None:
            return nearby
    value = expression(f"attr:{name}", (receiver,))
    if name in UNIFORM_PARTS and receiver.taint:
        return retaint(value, NO_TAINT)
    if name in _SETTINGS and receiver.taint:
        return retaint(value, frozenset(t for t in value.taint if t.kind != "data"))
    if name in DIMENSIONS and receiver.taint:
        return of_form(name, receiver, value)
    if name in SHAPES and receiver.taint:
        kept = frozenset(t for t in receiver.taint if t.kind not in ("data", "synced", "random"))
        return retaint(value, union(kept, receiver.trip or NO_TAINT))
    return part_of_share(value, receiver, NONE)


def conventional(frame: Frame, name: str, node: ast.AST) -> Value | None:
    """The value that a bare name stands for by convention (``local_rank``, ``is_main_process``)."""
    fact = facts.conventional_name(name)
    if fact is None:
        return None
    from .facts_apply import result_of_fact

    return result_of_fact(frame, fact, name, None, [], {}, node)


def bound_method(frame: Frame, info: FunctionInfo, receiver: Value) -> Value:
    """A project method bound to its receiver."""
    if info.is_staticmethod:
        return closures.decorated_value(frame, info)
    if not info.decorators or (info.is_classmethod and len(info.decorators) == 1):
        return Value("func", (info, None, receiver), receiver.taint, None, ("func", id(info), receiver.key))
    decorated = closures.decorated_value(frame, info)
    return bind(decorated, receiver)


def read_method(frame: Frame, info: FunctionInfo, receiver: Value, node: ast.AST) -> Value:
    """``receiver.name`` for a method of the project: bound to its receiver; a property is called."""
    if info.is_property:
        from .caches import cell_of, communicates, kept
        from .calls import call_value

        function = Value("func", (info, None, receiver))

        def call() -> Value:
            return call_value(frame, function, [], {}, node, property_read=True)

        if info.keeps_result and communicates(frame, function):
            return kept(frame, cell_of(info, receiver), call, node)
        return call()
    return bound_method(frame, info, receiver)


def bind(function: Value, receiver: Value) -> Value:
    """Bind a function value to a receiver."""
    if function.tag == "func" and function.data[2] is None:
        info, closure, _ = function.data
        return Value(
            "func", (info, closure, receiver), function.taint, None, ("func", id(info), receiver.key)
        )
    if function.tag == "wrapped":
        kind, inner, *more = function.data
        return Value("wrapped", (kind, bind(inner, receiver), *more), function.taint)
    return function


def _set_on_class(frame: Frame, cls: ClassInfo, name: str) -> Value | None:
    """What the program itself has assigned to a field of a class or of one of its ancestors."""
    heap = frame.live.heap
    for one in cls.mro():
        fields = heap.get(("class", id(one)))
        if fields is not None and name in fields:
            return fields[name]
    return None


def _class_attribute(frame: Frame, cls: ClassInfo, name: str, node: ast.AST) -> Value:
    assigned = _set_on_class(frame, cls, name)
    if assigned is not None:
        return assigned
    method = cls.find_method(name)
    if method is not None:
        if method.is_classmethod:
            return bound_method(frame, method, Value("class", (cls,)))
        from .closures import decorated_value

        return decorated_value(frame, method)
    nested = cls.find_nested_class(name)
    if nested is not None:
        return Value("class", (nested,))
    member = member_of(frame, cls, name)
    if member is not None:
        return member
    found = cls.find_class_assignment(name)
    if found is not None:
        return _evaluate_apart(frame, found[0], found[1])
    return symbol(("class-attr", cls.full_name, name))


def _evaluate_apart(frame: Frame, owner: ClassInfo, value: ast.expr) -> Value:
    from .expressions import evaluate

    machine = frame.machine
    key = ("class-value", str(id(value)))
    cached = machine.global_cache.get(key)
    if cached is None:
        if key in machine.global_active:
            return symbol(key)
        machine.global_active.add(key)
        apart = Frame(machine, owner.module, None, State({}, machine.template_heap), frame.depth + 1)
        cached = machine.global_cache[key] = evaluate(apart, value)
        machine.global_active.discard(key)
    return cached


def field_of(frame: Frame, object_id: object, name: str) -> Value | None:
    """A field from the current heap, or from the heap of class templates."""
    if frame.state is not None:
        found = frame.state.field(object_id, name)
        if found is not None:
            return found
    fields = frame.machine.template_heap.get(object_id)
    return None if fields is None else fields.get(name)


def as_queue(frame: Frame, cls: ClassInfo, name: str, value: Value) -> Value:
    """A container in a field, with what it holds as this rank's own affair where the class uses it as a queue."""
    if value.tag == "ite":  # the one of the first round or that of the next ones
        condition, then, orelse = value.data
        first, second = as_queue(frame, cls, name, then), as_queue(frame, cls, name, orelse)
        return value if first is then and second is orelse else choice(condition, first, second)
    if value.tag != "obj" or frame.machine.objects.info(value).kind == "instance":
        return value
    filling.fill_from_hooks(frame, cls, name, value)
    own = union(queues.queue_taint(frame, cls, name), filling.filled_by_data(frame, cls, name, value))
    return retaint(value, value.taint, union(value.trip or NO_TAINT, own)) if own else value


def _object_attribute(frame: Frame, receiver: Value, name: str, node: ast.AST) -> Value:
    info = frame.machine.objects.info(receiver)
    if info.kind != "instance" or info.cls is None:
        return expression(f"attr:{name}", (receiver,))
    if frame.machine.partly:
        note_attribute_use(frame, receiver, name, node)
    found = field_of(frame, receiver.data[0], name) or _set_on_class(frame, info.cls, name)
    if found is not None:
        return as_queue(frame, info.cls, name, _of_one_of_many(receiver, found))
    cls = info.cls
    method = cls.find_method(name)
    if method is not None:
        return read_method(frame, method, receiver, node)
    if name == "__class__":
        return Value("class", (cls,))
    assigned = cls.find_class_assignment(name)
    if assigned is not None and name not in cls.self_assignments:
        value = _evaluate_apart(frame, assigned[0], assigned[1])
        return bind(value, receiver) if value.tag == "func" else value
    value_or_none = parameters.template_field(frame, receiver, cls, name)
    if value_or_none is not None:
        return value_or_none
    return _inherited_attribute(frame, receiver, cls, name, node)


def _of_one_of_many(receiver: Value, found: Value) -> Value:
    """A field that each of the objects made in a loop has for itself, where the rank has chosen the object."""
    label = found.data[0] if found.tag == "sym" else None
    if (
        not receiver.taint
        or not isinstance(label, tuple)
        or label[:1] not in (("index",), ("element",), ("key",))
    ):
        return found
    why = frozenset(t for t in receiver.taint if t.kind in ("rank", "group-rank"))
    return retaint(found, union(found.taint, why), found.trip)


def _inherited_attribute(frame: Frame, receiver: Value, cls: ClassInfo, name: str, node: ast.AST) -> Value:
    bases = cls.external_bases()
    fact = facts.subclass_attribute(bases, name) if bases else None
    if fact is not None:
        from .facts_apply import read_known

        return read_known(frame, fact, receiver, node)
    if bases and facts.subclass_method(bases, name) is not None:
        return Value("bound", (receiver, name), receiver.taint)
    if facts.says_launched(name):
        return TRUE
    fact = facts.unknown_attribute(name) or facts.conventional_name(name)
    if fact is not None:
        from .expressions import text_of
        from .facts_apply import result_of_fact

        return result_of_fact(frame, fact, text_of(node), None, [], {}, node)
    return symbol(("field", receiver.data[0], name), receiver.taint)


def _library_attribute(frame: Frame, receiver: Value, name: str, node: ast.AST) -> Value:
    type_name, _, payload = receiver.data
    fact = facts.attribute(type_name, name)
    if fact is not None:
        from .facts_apply import read_known

        return read_known(frame, fact, receiver, node)
    if facts.method(type_name, name) is not None:
        return Value("bound", (receiver, name), receiver.taint)
    if payload is not None and name == "module":
        inner: Value = payload
        return inner
    if payload is not None and payload.tag in ("obj", "extobj"):
        return read_attribute(frame, payload, name, node)
    if type_name == "torch.Tensor" and name in SHAPES:  # the size is no data, that of a shard's as little
        return unknown_attribute(frame, receiver, name, node)
    return expression(f"attr:{name}", (receiver,))


def _super_attribute(frame: Frame, receiver: Value, name: str) -> Value:
    cls, instance = receiver.data
    for base in cls.mro()[1:]:
        method = base.methods.get(name)
        if method is not None:
            return bound_method(frame, method, instance)
    return Value("bound", (receiver, name))


def merge_taint(value: Value, other: Value) -> Value:
    """The value with another's taint added."""
    if not other.taint:
        return value
    return retaint(value, union(value.taint, other.taint or NO_TAINT), value.trip)
