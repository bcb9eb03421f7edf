"""Assignments to names, attributes, items and patterns."""

from __future__ import annotations

import ast

from ..values.value import (
    NO_TAINT,
    Taint,
    Value,
    choice,
    constant,
    expression,
    is_const,
    is_split,
    retaint,
    symbol,
    union,
)
from .callbacks import note_extended
from .contents import touch, whole, with_length
from .expressions import evaluate
from .flags import set_flag, set_variable
from .frame import Frame
from .inflight import used
from .lengths import part_of_share
from .state import CELL
from .widths import width

_RANKS = frozenset({"rank", "group-rank"})


def assign(frame: Frame, target: ast.AST, value: Value, *, weak: bool = True) -> None:
    """``target = value``."""
    if frame.state is None:
        return
    if isinstance(target, ast.Name):
        _assign_name(frame, target, value)
    elif isinstance(target, ast.Attribute):
        assign_attribute(frame, target, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(frame, target, value, weak)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)


def _assign_name(frame: Frame, target: ast.Name, value: Value) -> None:
    if frame.machine.says(frame.module, target.lineno, "uniform"):
        value = retaint(value, NO_TAINT, NO_TAINT if value.trip else value.trip)
        if value.tag in ("rank", "local_rank", "expr", "ite"):
            value = symbol(("uniform", frame.place(target)))
    function = frame.function
    if function is not None and target.id in function.nonlocal_names:
        owner = frame.enclosing
        while owner is not None:
            if owner.state is not None and target.id in owner.state.variables:
                owner.state.variables[target.id] = value
                frame.live.set_field(owner.cell(target.id), "value", value)
                break
            owner = owner.enclosing
    elif function is not None and target.id in function.shared_names:
        frame.live.set_field(frame.cell(target.id), "value", value)
    if target.id in (function.global_names if function is not None else frame.module.global_assignments):
        frame.live.set_field((CELL, frame.module.filename, target.id), "value", value)
    frame.live.variables[target.id] = value


def assign_attribute(frame: Frame, target: ast.Attribute, value: Value) -> None:
    """``receiver.name = value``; a setter of a project class is followed."""
    receiver = evaluate(frame, target.value)
    set_attribute(frame, receiver, target.attr, value, target)


def set_attribute(frame: Frame, receiver: Value, name: str, value: Value, node: ast.AST) -> None:
    """``receiver.name = value`` for a receiver that is known."""
    if is_split(receiver):
        condition, then, orelse = receiver.data
        for alternative in (then, orelse):
            if alternative.tag == "obj":
                old = frame.live.field(alternative.data[0], name)
                arms = (value, old) if alternative is then else (old, value)
                weak = value if old is None else choice(condition, *arms)
                set_attribute(frame, alternative, name, weak, node)
        return
    if receiver.tag in ("class", "func"):
        frame.live.set_field(("class", id(receiver.data[0])), name, value)
        return
    if receiver.tag == "extobj":
        set_flag(frame, receiver, name, value, node)
        return
    if receiver.tag != "obj":
        return
    info = frame.machine.objects.info(receiver)
    if info.cls is not None:
        setter = info.cls.find_setter(name)
        if setter is not None:
            from .following import inline_call

            inline_call(frame, setter, receiver, [value], {}, node)
            return
    frame.live.set_field(receiver.data[0], name, value)


def set_some_attribute(frame: Frame, receiver: Value, name: Value, node: ast.AST) -> None:
    """``setattr(receiver, name, value)`` with a name that is handed in: no setting is known to be what it was.

    Names that the program makes up itself (``f"layer{i}"``) are those of further fields.
    """
    if is_split(receiver):
        for one in receiver.data[1:]:
            set_some_attribute(frame, one, name, node)
    if receiver.tag != "obj" or name.tag != "sym":
        return
    object_id, cls = receiver.data[0], frame.machine.objects.info(receiver).cls
    written = frame.live.heap.fields(object_id)
    settings = [field for field, value in written.items() if is_const(value)]
    for one in cls.mro() if cls is not None else ():
        defaults = one.class_assignments.items()
        settings.extend(field for field, given in defaults if isinstance(given, ast.Constant))
    for field in dict.fromkeys(settings):
        if field not in written or is_const(written[field]):
            frame.live.set_field(
                object_id, field, symbol(("set by name", frame.place(node), object_id, field))
            )


def _assign_item(frame: Frame, target: ast.Subscript, value: Value, weak: bool) -> None:
    from .containers import data_of, write_item

    receiver = evaluate(frame, target.value)
    index = evaluate(frame, target.slice) if not isinstance(target.slice, ast.Slice) else symbol(("slice",))
    if receiver.tag == "ext" and receiver.data[0] == "os.environ":
        set_variable(frame, index, value, target)
    if write_item(frame, receiver, index, value, target, weak=weak):
        return
    used(frame, receiver, target, written=True)
    if receiver.tag in ("obj", "ext", "extobj", "module", "class"):
        return
    taint = union(receiver.taint, data_of(value.taint), index.taint)  # an item is contents, whoever wrote it
    if taint == receiver.taint:
        _write_alone(frame, receiver, target)
        return
    changed = symbol(("written", frame.place(target)), taint, receiver.trip)
    frame.live.replace_everywhere(receiver, changed)
    if isinstance(target.value, (ast.Name, ast.Attribute)):
        assign(frame, target.value, changed)


def _write_alone(frame: Frame, receiver: Value, target: ast.Subscript) -> None:
    """Something gets an item where the rank decides: it has other contents there, and the size that it had."""
    from .expressions import text_of

    place = frame.place(target)
    if any(t.kind in _RANKS for t in frame.path_taint()):
        frame.machine.contents_only.add(place)
        own = frozenset({Taint("data", place, text_of(target), "likely")})
        changed = retaint(receiver, union(receiver.taint, own), receiver.trip)
        frame.live.replace_everywhere(receiver, changed)


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Value) -> None:
    items = target.elts
    if value.tag == "generator":
        from .lazily import consumed

        consumed(frame, value, target)
    starred = next((i for i, item in enumerate(items) if isinstance(item, ast.Starred)), None)
    known = value.data if value.tag == "tuple" else None
    if value.tag == "obj" and frame.machine.objects.info(value).kind == "list":
        from .containers import REST, fields_of

        fields = fields_of(frame, value)
        if REST not in fields and len(fields) == len(items):
            known = tuple(fields[str(i)] for i in range(len(items)) if str(i) in fields)
    if known is not None and starred is None and len(known) == len(items):
        for item, part in zip(items, known, strict=True):
            assign(frame, item, part)
        return
    if known is not None and starred is not None and len(known) >= len(items) - 1:
        for item, part in zip(items[:starred], known, strict=False):
            assign(frame, item, part)
        tail = len(items) - starred - 1
        for offset in range(tail):
            assign(frame, items[starred + 1 + offset], known[len(known) - tail + offset])
        assign(frame, items[starred], expression("slice", (value,)))
        return
    length = with_length(frame, value).trip or value.trip
    for position, item in enumerate(items):
        if isinstance(item, ast.Starred):
            rest = expression("slice", (whole(frame, value),))
            assign(frame, item.value, retaint(rest, rest.taint, length))
            continue
        assign(frame, item, _part(frame, value, position, item))


def _part(frame: Frame, value: Value, position: int, target: ast.AST) -> Value:
    if value.tag == "ite":
        condition, then, orelse = value.data
        return choice(condition, _part(frame, then, position, target), _part(frame, orelse, position, target))
    if value.tag == "tuple" and position < len(value.data):
        part: Value = value.data[position]
        return part
    if value.tag == "obj":
        from .containers import element_of

        return element_of(frame, value, target)
    if value.tag == "extobj":
        return symbol(("part", value.key, position), value.taint)
    index = constant(position)
    return part_of_share(width(expression("getitem", (value, index)), value, index), value, index)


def augmented(frame: Frame, node: ast.AugAssign) -> None:
    """``target op= value``."""
    load = _as_load(node.target)
    if frame.machine.begun and isinstance(node.target, (ast.Name, ast.Attribute)):
        used(frame, evaluate(frame, load), node, written=True)
    combined = ast.copy_location(ast.BinOp(left=load, op=node.op, right=node.value), node)
    value = evaluate(frame, combined)
    if isinstance(node.op, ast.Add) and value.tag == "expr":
        left = evaluate(frame, load)
        if left.tag == "obj":
            from .containers import REST, element_of, fields_of, lengthen, merged

            right = evaluate(frame, node.value)
            note_extended(frame, left, right, node)
            fields = dict(fields_of(frame, left))
            fields[REST] = merged(fields.get(REST), element_of(frame, right, node))
            frame.live.heap[left.data[0]] = fields
            touch(frame, left, node)
            lengthen(frame, left, with_length(frame, right).trip or NO_TAINT)
            return
    assign(frame, node.target, value)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(id=target.id, ctx=ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(value=target.value, attr=target.attr, ctx=ast.Load()), target)
    if isinstance(target, ast.Subscript):
        return ast.copy_location(
            ast.Subscript(value=target.value, slice=target.slice, ctx=ast.Load()), target
        )
    return target
