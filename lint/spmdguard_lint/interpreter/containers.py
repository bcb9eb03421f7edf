"""Lists, dicts and sets on the abstract heap: displays, items, methods, elements and lengths."""

from __future__ import annotations

import ast
from typing import Any

from ..values.value import (
    NO_TAINT,
    NONE,
    OF_A_SET,
    Place,
    Taint,
    Taints,
    Value,
    alternatives,
    choice,
    expression,
    is_const,
    is_split,
    retaint,
    symbol,
    union,
    without_order,
)
from .contents import length_of_copy, touch
from .frame import Frame
from .lengths import part_of_share
from .protocols import special
from .restored import restored
from .selection import distinct, is_mask, picked, picks, placed
from .stages import note_part
from .tables import is_question, item_by_choice
from .widths import width

REST = "*"


def make_display(frame: Frame, node: ast.List | ast.Set | ast.Dict) -> Value:
    """A list, set or dict display."""
    from .expressions import evaluate

    kind = {ast.List: "list", ast.Set: "set", ast.Dict: "dict"}[type(node)]
    fields: dict[str, Value] = {}
    trip: Taints = NO_TAINT
    if isinstance(node, ast.Dict):
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = evaluate(frame, value_node)
            key = evaluate(frame, key_node) if key_node is not None else NONE
            name = repr(key.data[0]) if is_const(key) and key_node is not None else REST
            fields[name] = value
            trip = union(trip, without_order(key.taint))
    else:
        for index, item in enumerate(node.elts):
            value = evaluate(frame, item)
            name = REST if isinstance(item, ast.Starred) or kind == "set" else str(index)
            fields[name] = merged(fields.get(name), value)
            if isinstance(item, ast.Starred):
                trip = union(trip, value.trip or NO_TAINT)
    return allocate(frame, kind, fields, trip, node)


def merged(old: Value | None, new: Value, why: Taints = NO_TAINT) -> Value:
    if old is None:
        return new
    return choice(symbol(("one-of", old.key, new.key), why), old, new)


def allocate(frame: Frame, kind: str, fields: dict[str, Value], trip: Taints | None, node: ast.AST) -> Value:
    """A fresh container at an allocation site."""
    object_id = (kind, frame.place(node), frame.nesting)
    value = frame.machine.objects.make(object_id, kind, trip=trip)
    frame.machine.appended.pop(object_id, None)
    if frame.state is not None:
        frame.state.heap[object_id] = fields
    return value


def make_container(
    frame: Frame, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """``list()``, ``dict()``, ``set()`` calls."""
    fields = {repr(k): v for k, v in kwargs.items()}
    trip: Taints = NO_TAINT
    if args:
        item = element_of(frame, args[0], node)
        pairs = name == "dict" and item.tag == "tuple" and len(item.data) == 2
        fields[REST] = item.data[1] if pairs else item
        trip = union(args[0].trip or NO_TAINT, distinct(name, item))
    return allocate(frame, name, fields, trip, node)


def copy_container(frame: Frame, value: Value, name: str, node: ast.AST) -> Value | None:
    """``list(x)`` of a container: a copy with the fields of now."""
    if value.tag == "obj" and frame.machine.objects.info(value).kind in ("list", "set", "dict"):
        fields = dict(fields_of(frame, value))
        kind = "list"
        if frame.machine.objects.info(value).kind != "list" or name == "sorted":
            merged = joined(list(fields.values()))
            if frame.machine.objects.info(value).kind == "set" and name != "sorted":
                merged = _unordered(merged or symbol(("element", value.data[0])), frame.place(node))
            elif merged is not None:
                of_keys = name == "sorted" and frame.machine.objects.info(value).kind == "dict"
                merged = ordered(element_of(frame, value, node) if of_keys else merged)
            fields = {REST: merged} if merged is not None else {}
        trip = length_of_copy(frame, value)
        if name == "sorted" and trip:
            from .iterating import settled

            trip = settled(frame, trip)
        return allocate(frame, kind, fields, trip, node)
    if value.tag == "tuple" and name != "sorted":
        return (
            value
            if name == "tuple"
            else allocate(frame, "list", {str(i): v for i, v in enumerate(value.data)}, NO_TAINT, node)
        )
    return None


def ordered(value: Value) -> Value:
    """An item of what was sorted, or the parts of one."""
    from .expressions import tuple_value

    if value.tag == "tuple":
        return tuple_value([ordered(part) for part in value.data])
    kept = without_order(value.taint)
    return value if kept == value.taint else retaint(value, kept, value.trip)


def fields_of(frame: Frame, value: Value) -> dict[str, Value]:
    """The fields of a container now."""
    object_id = value.data[0]
    found = None if frame.state is None else frame.state.heap.get(object_id)
    return found if found is not None else frame.machine.template_heap.fields(object_id)


def unpacked_mapping(frame: Frame, value: Value) -> tuple[dict[str, Value], bool]:
    """The keyword arguments that ``**value`` gives as far as they are known, and whether that is all of them."""
    if value.tag != "obj" or frame.machine.objects.info(value).kind != "dict":
        return {}, False
    fields = fields_of(frame, value)
    known = {name[1:-1]: item for name, item in fields.items() if name[:1] in ("'", '"')}
    return known, len(known) == len(fields) and bool(known)


def frozen(frame: Frame, value: Value) -> Value:
    """The contents of a list now, as a value that can be evaluated later; other values as they are."""
    if value.tag != "obj" or frame.machine.objects.info(value).kind not in ("list", "set"):
        return value
    fields = fields_of(frame, value)
    names = [str(position) for position in range(len(fields))]
    if all(name in fields for name in names):
        from .expressions import tuple_value

        return tuple_value([fields[name] for name in names])
    repeated = frame.machine.repeated.get(value.data[0])
    if repeated is not None and repeated.fields is fields:
        return repeated.made
    made = frame.machine.made_by_rule.get(value.data[0])
    if made is not None and made[0] is fields:
        key = ("each", *(part.key for part in made[1]))
        return Value("each", made[1], union(*(part.taint for part in made[1])), None, key)
    taint = union(value.taint, value.trip or NO_TAINT, *(item.taint for item in fields.values()))
    return symbol(("contents", value.data[0]), frozenset(t for t in taint if t.kind != "order"))


def joined(values: list[Value], why: Taints = NO_TAINT) -> Value | None:
    """One value that stands for any of several; ``why`` are the reasons for which ranks may choose another."""
    if not values:
        return None
    result = values[0]
    for value in values[1:6]:
        if value is not result:
            result = merged(result, value, why)
    extra = union(*(v.taint for v in values))
    return retaint(result, union(result.taint, extra), result.trip)


def read_item(frame: Frame, receiver: Value, index: Value, node: ast.Subscript) -> Value:
    """``receiver[index]``."""
    if receiver.tag == "ext" and receiver.data[0] == "os.environ":
        from .library import environment_value

        return environment_value(frame, index, node)
    if receiver.tag == "tuple" and is_const(index) and isinstance(index.data[0], int):
        position = index.data[0]
        if -len(receiver.data) <= position < len(receiver.data):
            item: Value = receiver.data[position]
            return item
    if receiver.tag == "tuple" and len(receiver.data) == 2 and is_question(index):
        return choice(index, receiver.data[1], receiver.data[0])
    if receiver.tag == "obj" and frame.machine.objects.info(receiver).kind in ("list", "dict"):
        return container_item(frame, receiver, index)
    own = special(frame, receiver, "__getitem__", [index], node)
    if own is not None:
        return own
    if is_split(receiver):
        condition, then, orelse = receiver.data
        return choice(condition, read_item(frame, then, index, node), read_item(frame, orelse, index, node))
    item = expression("getitem", (receiver, index))
    if is_mask(index):
        return picked(frame, item, index, node)
    if is_const(index) and receiver.tag == "expr" and receiver.trip and picks(receiver.data[0][5:], 1):
        return retaint(item, item.taint, receiver.trip)  # the indices along one dimension
    return restored(width(part_of_share(item, receiver, index), receiver, index), receiver, index)


def container_item(frame: Frame, receiver: Value, index: Value) -> Value:
    """The item at an index or key, as far as it is there."""
    fields = fields_of(frame, receiver)
    name = item_name(frame, receiver, index)
    if name is not None and name in fields:
        return fields[name]
    rest = fields.get(REST)
    if name is not None and rest is not None:
        return placed(receiver, rest)
    chosen = item_by_choice(frame, receiver, index, fields, container_item)
    if chosen is not None:
        return chosen
    different = {item.key: item for item in fields.values()}
    if frame.machine.objects.info(receiver).kind == "list" and len(different) == 1:
        (same,) = different.values()
        if is_const(same):
            return same  # whichever it is
    everything = joined(list(fields.values()), index.taint)
    if everything is None:
        return symbol(("item", receiver.data[0], name or index.key), union(receiver.taint, index.taint))
    if is_const(everything) and index.taint:
        everything = symbol(("item", receiver.data[0], index.key), everything.taint)
    return retaint(everything, union(everything.taint, index.taint), everything.trip)


def item_name(frame: Frame, receiver: Value, index: Value) -> str | None:
    """The field that a constant index names."""
    if not is_const(index):
        return None
    key = index.data[0]
    if frame.machine.objects.info(receiver).kind == "dict":
        return repr(key)
    if isinstance(key, int):
        if key >= 0:
            return str(key)
        size = sum(1 for name in fields_of(frame, receiver) if name != REST)
        return str(size + key) if size + key >= 0 else None
    return None


def write_item(
    frame: Frame, receiver: Value, index: Value, value: Value, node: ast.AST, *, weak: bool = True
) -> bool:
    """``receiver[index] = value`` on a container of the heap; False when it is none."""
    if receiver.tag != "obj" or frame.machine.objects.info(receiver).kind == "instance":
        return False
    name = item_name(frame, receiver, index)
    state = frame.live
    fields = dict(fields_of(frame, receiver))
    is_new = name is None or name not in fields
    if name is not None:
        fields[name] = value
        if REST in fields and name not in fields:
            fields[name] = merged(fields[REST], value)
    else:
        tainted = retaint(value, union(value.taint, index.taint), value.trip)
        fields[REST] = merged(fields.get(REST), tainted)
    state.heap[receiver.data[0]] = fields
    if frame.machine.objects.info(receiver).kind == "dict" and is_new:
        touch(frame, receiver, node)
        lengthen(frame, receiver, union(index.taint, frame.path_taint()))
    return True


def lengthen(frame: Frame, receiver: Value, taint: Taints) -> Value:
    """A container grew under a condition: its length varies for the same reason; gives the longer one.

    What was added in an order of its own has the same length on every rank, and that order.
    """
    if not taint:
        return receiver
    counted = without_order(taint)
    order = frozenset(t for t in taint if t.kind == "order")
    trip = union(receiver.trip or NO_TAINT, counted)
    longer = Value("obj", receiver.data, union(receiver.taint, order), trip)
    frame.live.replace_everywhere(receiver, longer)
    return longer


def repeated(frame: Frame, left: Value, right: Value, node: ast.AST) -> Value:
    """``[x] * n``."""
    item = joined(list(fields_of(frame, left).values()))
    fields = {REST: item} if item is not None else {}
    if item is not None:
        from .machine import Repeated

        made = expression("repeat", (frozen(frame, left), right))
        frame.machine.repeated["list", frame.place(node), frame.nesting] = Repeated(fields, made, right)
    return allocate(frame, "list", fields, right.taint, node)


def element_of(frame: Frame, value: Value, node: ast.AST) -> Value:
    """What a loop over a value yields."""
    place = frame.place(node)
    tag = value.tag
    if tag == "obj":
        kind = frame.machine.objects.info(value).kind
        if kind == "instance":
            return symbol(("element", place), value.taint)
        if kind == "dict":
            return symbol(("key", place), value.taint)
        item = joined(list(fields_of(frame, value).values()))
        result = item or symbol(("element", place), value.taint)
        if kind == "set":
            return _unordered(result, _made_at(value, place))
        return symbol_if_many(frame, value, result, place)
    if tag == "tuple":
        return joined(list(value.data)) or symbol(("element", place))
    if is_split(value):
        _, then, orelse = value.data
        for outer, inner in ((then, orelse), (orelse, then)):
            if _shows(frame, outer, inner):
                return element_of(frame, inner, node)
        return choice(value.data[0], element_of(frame, then, node), element_of(frame, orelse, node))
    if tag == "expr":
        if _is_set(frame, value):
            return _unordered(symbol(("element", place), value.taint), place)
        return _element_of_expression(frame, value, node)
    if tag == "extobj":
        return _element_of_instance(frame, value, node)
    if tag == "generator":
        return symbol(("element", place), value.taint)
    if tag == "sym":
        return _element_of_unknown(frame, value, node)
    return symbol(("element", place), value.taint)


def _shows(frame: Frame, outer: Value, inner: Value) -> bool:
    """Whether an iterable is made around another one: a progress bar that one rank alone shows."""
    if outer.tag == "obj":
        return any(field.key == inner.key for field in fields_of(frame, outer).values())
    made = outer.tag == "expr" and outer.data[0].startswith("call")
    return made and any(operand.key == inner.key for operand in outer.data[1])


def symbol_if_many(frame: Frame, container: Value, item: Value, place: Any) -> Value:
    """An element of a container with more than one item is not any particular one."""
    fields = fields_of(frame, container)
    if len(fields) == 1 and REST not in fields:
        return item
    if item.tag in ("obj", "extobj", "func", "class", "ext", "tuple", "bound", "partial", "ite", "wrapped"):
        return item
    return symbol(("element", place, item.key), item.taint, item.trip)


def _unordered(value: Value, place: Any) -> Value:
    if _integral(value):
        return symbol(("element", place), value.taint)
    taint = Taint("order", place, OF_A_SET)
    return symbol(("element", place), union(value.taint, frozenset({taint})))


def _made_at(value: Value, place: Any) -> Any:
    """Where a container was made, if that is known."""
    object_id = value.data[0]
    known = isinstance(object_id, tuple) and len(object_id) > 1 and isinstance(object_id[1], Place)
    return object_id[1] if known else place


_SET_OPERATORS = (
    "&",
    "|",
    "-",
    "^",
    "call:union",
    "call:intersection",
    "call:difference",
    "call:symmetric_difference",
)
_THROUGH = frozenset({"call:tqdm.tqdm", "call:itertools.cycle", "call:itertools.islice"})


def _is_set(frame: Frame, value: Value) -> bool:
    """Whether an expression gives a set: an operation on sets or on the keys of dicts."""
    if value.tag == "obj":
        return frame.machine.objects.info(value).kind == "set"
    if value.tag != "expr":
        return False
    operator, operands = value.data
    if operator in _SET_OPERATORS:
        return any(_is_set(frame, operand) or _is_keys(frame, operand) for operand in operands)
    return operator == "call:copy" and _is_set(frame, operands[0])


def _is_keys(frame: Frame, value: Value) -> bool:
    if value.tag == "obj":
        return frame.machine.objects.info(value).of_keys
    return value.tag == "expr" and value.data[0] == "call:keys"


def _integral(value: Value) -> bool:
    """Whether a set's items are whole numbers, whose order is the same in every process."""
    if value.tag == "const":
        return isinstance(value.data[0], (int, float))
    if value.tag in ("rank", "world", "local_rank"):
        return True
    if value.tag == "sym":
        return isinstance(value.data[0], tuple) and value.data[0][:1] == ("index",)
    if value.tag == "expr":
        arithmetic = value.data[0] in ("+", "-", "*", "//", "%", "int")
        return arithmetic and all(_integral(operand) for operand in value.data[1])
    return value.tag == "ite" and all(_integral(part) for part in value.data[1:])


def _element_of_expression(frame: Frame, value: Value, node: ast.AST) -> Value:
    from .expressions import tuple_value

    place = frame.place(node)
    operator, operands = value.data
    if operator == "range":
        start = operands[0].taint if len(operands) > 1 else NO_TAINT
        step = operands[2].taint if len(operands) > 2 else NO_TAINT
        return symbol(("index", place), union(start, step))
    if operator == "enumerate" and operands:
        return tuple_value([symbol(("index", place)), element_of(frame, operands[0], node)])
    if operator == "zip":
        return tuple_value([element_of(frame, operand, node) for operand in operands])
    if operator in ("list", "tuple", "iter", "reversed", "sorted", "slice") and operands:
        item = element_of(frame, operands[0], node)
        extra = union(*(o.taint for o in operands[1:])) if len(operands) > 1 else NO_TAINT
        if operator == "sorted":
            return ordered(item)
        extra = union(extra, frozenset(t for t in value.taint if t.kind == "order"))
        return retaint(item, union(item.taint, extra), item.trip) if extra else item
    if operator in _THROUGH and operands:
        return element_of(frame, operands[0], node)
    if operator in ("call:keys", "call:items"):
        # which keys a mapping has is its structure; what stands under them is contents
        name = symbol(("key", place), frozenset(t for t in value.taint if t.kind not in ("data", "synced")))
        return (
            name if operator == "call:keys" else tuple_value([name, symbol(("element", place), value.taint)])
        )
    kept = data_of(value.taint) if operator.startswith("call:") else value.taint
    return note_part(frame, operator, symbol(("element", place), kept), place)


def data_of(taint: Taints) -> Taints:
    """Why the items of something that a call has made from the rank differ: they are this rank's data, no ranks."""
    return frozenset(
        t._replace(kind="data", certainty="likely") if t.kind in ("rank", "group-rank") else t for t in taint
    )


def _element_of_instance(frame: Frame, value: Value, node: ast.AST) -> Value:
    from ..facts import lookup as facts

    place = frame.place(node)
    fact = facts.iterate_instance(value.data[0])
    if fact is not None and fact.result == "varying":
        taint = frozenset({Taint(fact.varying or "data", place, "this rank's own batches", "likely")})
        return symbol(("element", place), taint)
    if fact is not None and fact.returns:
        key = ("extobj", fact.returns, value.key)
        return Value("extobj", (fact.returns, value.data[1], None), value.taint, None, key)
    return symbol(("element", place), value.taint)


def _element_of_unknown(frame: Frame, value: Value, node: ast.AST) -> Value:
    place = frame.place(node)
    iterated = node.iter if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) else None
    name = _last_name(iterated)
    if "loader" in name.lower():
        taint = frozenset({Taint("data", place, f"batches of `{name}`", "likely")})
        return symbol(("element", place), union(value.taint, taint))
    return symbol(("element", place), value.taint)


def _last_name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and node.args:
        return _last_name(node.args[0])
    return ""


def any_callable(value: Value) -> bool:
    """Whether some alternative is a function."""
    return any(v.tag in ("func", "ext", "bound", "partial", "wrapped") for v in alternatives(value))
