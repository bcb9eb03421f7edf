"""Methods of lists, dicts and sets: what they change, what they give."""

from __future__ import annotations

import ast

from ..values.value import NO_TAINT, NONE, Value, choice, expression, is_const, retaint, symbol, union
from .callbacks import note_appended, note_extended
from .containers import (
    REST,
    allocate,
    container_item,
    element_of,
    fields_of,
    item_name,
    joined,
    lengthen,
    merged,
)
from .contents import is_container, structure, touch, version, whole, with_length
from .frame import Frame
from .lazily import consumed
from .lengths import trip_taint
from .orders import CHANGING, reordered
from .selection import distinct

_ADDING = frozenset({"append", "add", "appendleft", "insert"})
_TAKING = frozenset({"pop", "popleft", "popitem", "remove", "discard"})
_VIEWS = frozenset({"items", "keys", "values", "copy", "union", "intersection", "difference"})


def call_container_method(
    frame: Frame, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value:
    """A method of a list, dict or set."""
    fields = fields_of(frame, receiver)
    if name == "append" and len(args) == 1:
        note_appended(frame, receiver, args[0], node)
    if name in _ADDING and args:
        _give(frame, receiver, {**fields, REST: merged(fields.get(REST), args[-1])}, node)
        if name == "insert":
            _forget_places(frame, receiver)
        lengthen(frame, receiver, union(frame.path_taint(), distinct(_kind(frame, receiver), args[-1])))
        return NONE
    if name in ("extend", "update") and (args or kwargs):
        return _extended(frame, receiver, args, kwargs, node)
    by_key = name in ("get", "setdefault", "pop") and args
    if by_key and frame.machine.objects.info(receiver).kind == "dict":
        return _keyed(frame, receiver, name, args, node)
    if name in _TAKING:
        item = joined(list(fields.values())) or symbol(("item", frame.place(node)), receiver.taint)
        touch(frame, receiver, node, emptied=True)
        _forget_places(frame, receiver)
        return item
    if name in _VIEWS:
        return _view(frame, receiver, name, fields, node)
    if name == "clear":
        _give(frame, receiver, {}, node, emptied=True)
        return NONE
    if name in CHANGING:
        reordered(frame, receiver, name, args, kwargs, node)
        _forget_places(frame, receiver)
        return NONE
    return expression(f"call:{name}", [whole(frame, receiver), *(whole(frame, arg) for arg in args)])


def _kind(frame: Frame, receiver: Value) -> str:
    return frame.machine.objects.info(receiver).kind


def _give(
    frame: Frame, receiver: Value, fields: dict[str, Value], node: ast.AST, *, emptied: bool = False
) -> None:
    """A container has other items from here on."""
    frame.live.heap[receiver.data[0]] = fields
    touch(frame, receiver, node, emptied=emptied)


def _forget_places(frame: Frame, receiver: Value) -> None:
    """The items of a list have moved: each may be at any place."""
    if frame.machine.objects.info(receiver).kind == "list":
        everything = joined(list(fields_of(frame, receiver).values()))
        frame.live.heap[receiver.data[0]] = {} if everything is None else {REST: everything}


def _extended(
    frame: Frame, receiver: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    fields = {**fields_of(frame, receiver), **{repr(key): value for key, value in kwargs.items()}}
    longer = frame.path_taint()
    if args:
        consumed(frame, args[0], node)
        note_extended(frame, receiver, args[0], node)
        item = element_of(frame, args[0], node)
        fields[REST] = merged(fields.get(REST), item)
        longer = union(longer, with_length(frame, args[0]).trip or NO_TAINT)
        longer = union(longer, distinct(_kind(frame, receiver), item))
    _give(frame, receiver, fields, node)
    lengthen(frame, receiver, longer)
    return NONE


def _keyed(frame: Frame, receiver: Value, name: str, args: list[Value], node: ast.AST) -> Value:
    """``d.get(k, other)``, ``d.pop(k, other)``, ``d.setdefault(k, other)``."""
    index, other = args[0], args[1] if len(args) > 1 else NONE
    fields = fields_of(frame, receiver)
    known = item_name(frame, receiver, index)
    found = container_item(frame, receiver, index)
    varies = union(index.taint, structure(frame, receiver))
    if known is None or known not in fields or varies:
        label = ("has", receiver.data[0], version(frame, receiver).key, index.key)
        found = choice(symbol(label, varies), found, other)
    if name == "pop":
        left = {key: item for key, item in fields.items() if key != known}
        _give(frame, receiver, left, node, emptied=True)
    elif name == "setdefault":
        _give(frame, receiver, {**fields, known or REST: found}, node)
        if known is None or known not in fields:
            lengthen(frame, receiver, union(index.taint, frame.path_taint()))
    return found


def from_keys(frame: Frame, args: list[Value], node: ast.AST) -> Value:
    """``dict.fromkeys(keys, value)``: a dict with these keys, in their order."""
    keys, value = with_length(frame, args[0]), args[1] if len(args) > 1 else NONE
    key = element_of(frame, keys, node)
    known = keys.data if keys.tag == "tuple" else ()
    if is_container(frame, keys) and _kind(frame, keys) == "list":
        known = tuple(fields_of(frame, keys).values())
    names = [repr(one.data[0]) for one in known if is_const(one)]
    fields = dict.fromkeys(names if known and len(names) == len(known) else [REST], value)
    trip = union(trip_taint(keys), distinct("set", key))
    made = allocate(frame, "dict", fields, trip, node)
    return retaint(made, union(made.taint, key.taint), made.trip) if key.taint else made


def fill_in(frame: Frame, receiver: Value, index: Value, node: ast.AST) -> Value:
    """``groups[key]`` of a ``defaultdict`` puts the key there, if it is new; gives the dict as it is then."""
    known = item_name(frame, receiver, index)
    if frame.state is None or (known is not None and known in fields_of(frame, receiver)):
        return receiver
    touch(frame, receiver, node)
    return lengthen(frame, receiver, union(index.taint, frame.path_taint()))


def _view(frame: Frame, receiver: Value, name: str, fields: dict[str, Value], node: ast.AST) -> Value:
    item = joined(list(fields.values())) or symbol(("item", receiver.data[0]), receiver.taint)
    trip = with_length(frame, receiver).trip
    if name == "copy":
        return allocate(frame, frame.machine.objects.info(receiver).kind, dict(fields), trip, node)
    from .expressions import tuple_value

    key = symbol(("key", receiver.data[0]), frozenset(t for t in receiver.taint if t.kind == "order"))
    element = {"items": tuple_value([key, item]), "keys": key}.get(name, item)
    kind = "set" if frame.machine.objects.info(receiver).kind == "set" else "list"
    view = allocate(frame, kind, {REST: element}, trip, node)
    frame.machine.objects.info(view).of_keys = name == "keys" and not all(
        key.lstrip("-").isdigit() for key in fields
    )
    return view


def delete_item(frame: Frame, receiver: Value, index: Value, node: ast.AST) -> None:
    """``del receiver[index]``."""
    if not is_container(frame, receiver):
        return
    if frame.machine.objects.info(receiver).kind == "dict":
        _keyed(frame, receiver, "pop", [index], node)
        return
    touch(frame, receiver, node)
    _forget_places(frame, receiver)
