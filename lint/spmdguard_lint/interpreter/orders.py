"""Orders: whether ranks take the items of one sequence in another order.

Terminology: two values are *rearrangements* of one another where they hold the same items and their order alone
differs (``items`` and ``items[::-1]``). A list has an order of its own on each rank where the rank decides whether it
is reversed, by which key it is sorted, where it is cut and joined anew, or where it is shuffled. A sort key is
*coarse* where it gives many items the same: sorting is stable, so that those keep the order in which they came, and
where that was the order of a set, it is another one on each rank.
"""

from __future__ import annotations

import ast

from ..values.evaluate import rank_dependent
from ..values.value import NO_TAINT, NONE, Taint, Taints, Value, retaint, union, without_order
from .frame import Frame

CHANGING = frozenset({"reverse", "sort", "rotate"})
_KINDS = frozenset({"rank", "group-rank", "random", "time"})
_AROUND = frozenset({"enumerate", "zip", "list", "tuple", "iter", "call:tqdm.tqdm"})
_KEEPING = frozenset({"list", "tuple", "iter", "reversed", "sorted"})
_PERMUTING = frozenset({"randperm", "permutation", "sample"})
_ANSWERS = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in", "not", "bool", "len"}
) | {
    f"call:{name}"
    for name in ("startswith", "endswith", "count", "isinstance", "numel", "nelement", "dim", "isdigit")
}
_COMBINING = frozenset({"and", "or", "int", "float", "neg", "abs", "+", "-", "*", "//", "%"})
_COARSE = frozenset({"builtins.len", "builtins.bool", "builtins.callable"})


def order_of(frame: Frame, iterated: Value) -> Taints:
    """Why ranks take the items of a value in another order, as far as the value itself tells."""
    if iterated.tag == "expr":
        operator, operands = iterated.data
        if operator in _AROUND:
            return union(*(order_of(frame, operand) for operand in operands))
        if (operator == "+" and len(operands) == 2 and _rotated(*operands)) or _permutes(operator):
            return _as_order(iterated.taint)
    if iterated.tag == "ite":
        condition, then, orelse = iterated.data
        if _reasons(condition.taint) and _rearranged(frame, then, orelse):
            return _as_order(condition.taint)
        return union(order_of(frame, then), order_of(frame, orelse))
    name = iterated.data[0] if iterated.tag == "sym" else None
    if isinstance(name, tuple) and name and _permutes(name[0]):
        return _as_order(iterated.taint)
    return NO_TAINT


def _permutes(name: object) -> bool:
    """Whether a library call of this name gives its items in another order."""
    text = str(name)
    return text == "torch.randperm" or ("random" in text and text.rpartition(".")[2] in _PERMUTING)


def as_long(frame: Frame, value: Value) -> bool:
    """Whether a sequence is chosen of two that are written out with as many items."""
    if value.tag != "ite":
        return False
    one, other = _items(frame, value.data[1]), _items(frame, value.data[2])
    return len(one) == len(other) > 0


def _reasons(taint: Taints) -> Taints:
    return frozenset(t for t in taint if t.kind in _KINDS)


def _as_order(taint: Taints) -> Taints:
    return frozenset(t._replace(kind="order") for t in _reasons(taint))


def _rearranged(frame: Frame, first: Value, second: Value) -> bool:
    if first.key == second.key:
        return False
    if _base(first).key == _base(second).key:
        return True
    one, other = _items(frame, first), _items(frame, second)
    return one != other and sorted(one) == sorted(other) and len(one) > 1


def _base(value: Value) -> Value:
    """What a sequence is made of, without what only puts it into another order."""
    while value.tag == "expr":
        operator, operands = value.data
        whole = operator == "slice" and all(bound.key == NONE.key for bound in operands[1:3])
        if operator == "+" and len(operands) == 2 and _rotated(*operands):
            value = operands[0].data[1][0]
        elif operands and (operator in _KEEPING or (whole and len(operands) == 4 and _is_one(operands[3]))):
            value = operands[0]
        else:
            break
    return value


def _is_one(step: Value) -> bool:
    return step.key == NONE.key or (step.tag == "const" and step.data[0] in (1, -1))


def _rotated(first: Value, second: Value) -> bool:
    """``items[k:] + items[:k]`` with a bound that depends on the rank."""
    for side in (first, second):
        if side.tag != "expr" or side.data[0] != "slice" or len(side.data[1]) != 4:
            return False
    (base, lower, upper, _), (other, start, end, _) = first.data[1], second.data[1]
    ends = upper.key == NONE.key and start.key == NONE.key
    return base.key == other.key and ends and lower.key == end.key and rank_dependent(lower)


def _items(frame: Frame, value: Value) -> list[int]:
    """The keys of the items of a sequence or a dict that is written out."""
    if value.tag == "tuple":
        return [item.key for item in value.data]
    if value.tag != "obj":
        return []
    from .containers import REST, fields_of

    kind = frame.machine.objects.info(value).kind
    fields = fields_of(frame, value)
    if REST in fields or kind not in ("list", "dict"):
        return []
    return [hash(name) if kind == "dict" else item.key for name, item in fields.items()]


def reordered(
    frame: Frame, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> None:
    """``items.sort(...)`` and the like: the items of a list have an order of their own where ranks part in it."""
    why = union(_reasons(frame.path_taint()), by_key(frame, receiver, kwargs, node))
    if name == "rotate":
        why = union(why, *(_reasons(arg.taint) for arg in args))
    if why or (name == "sort" and keeps_order(frame, receiver, kwargs, node)):
        mark(frame, receiver, node)
    elif name == "sort" and receiver.tag == "obj":
        from .containers import fields_of, ordered

        fields = {key: ordered(item) for key, item in fields_of(frame, receiver).items()}
        frame.live.heap[receiver.data[0]] = fields
    elif name == "sort" and receiver.tag in ("sym", "expr"):
        frame.live.replace_everywhere(
            receiver, retaint(receiver, without_order(receiver.taint), receiver.trip)
        )


def by_key(frame: Frame, items: Value, kwargs: dict[str, Value], node: ast.AST) -> Taints:
    """Why ranks sort by another key, or in another direction."""
    why = _reasons(kwargs["reverse"].taint) if "reverse" in kwargs else NO_TAINT
    key = kwargs.get("key")
    if key is None or key.tag not in ("func", "partial"):
        return why
    from .calls import call_value
    from .containers import element_of

    item = element_of(frame, items, node)
    with frame.collecting():
        result = call_value(frame, key, [item], {}, node)
    return union(why, _reasons(result.taint) - item.taint)


def order_at(frame: Frame, node: ast.AST) -> Taints:
    """The reason that a call gives items another order on each rank."""
    from .expressions import text_of

    return frozenset({Taint("order", frame.place(node), text_of(node))})


def mark(frame: Frame, items: Value, node: ast.AST) -> None:
    """The items of a list come in another order on each rank from here on."""
    order = order_at(frame, node)
    if items.tag == "obj":
        from .containers import fields_of

        fields = fields_of(frame, items)
        frame.live.heap[items.data[0]] = {name: _with(item, order) for name, item in fields.items()}
    elif items.tag in ("sym", "expr"):
        taint = union(without_order(items.taint), order)
        changed = retaint(items, taint, items.trip if items.trip is not None else NO_TAINT)
        frame.live.replace_everywhere(items, changed)


def _with(item: Value, order: Taints) -> Value:
    return retaint(item, union(without_order(item.taint), order), item.trip)


def sorted_list(frame: Frame, value: Value, items: Value, kwargs: dict[str, Value], node: ast.AST) -> Value:
    """What ``sorted(items, ...)`` gives, where the order may be another one on each rank."""
    from .containers import REST, allocate, element_of, ordered

    item = element_of(frame, items, node)
    order = (
        order_at(frame, node)
        if by_key(frame, items, kwargs, node)
        else _kept_by_key(frame, item, kwargs, node)
    )
    if not order:
        return value
    return allocate(frame, "list", {REST: _with(ordered(item), order)}, value.trip, node)


def keeps_order(frame: Frame, items: Value, kwargs: dict[str, Value], node: ast.AST) -> bool:
    """Whether ``items.sort(key=...)`` leaves some of them in the order in which they came, another one on each rank."""
    from .containers import element_of

    return bool(kwargs) and bool(_kept_by_key(frame, element_of(frame, items, node), kwargs, node))


def _kept_by_key(frame: Frame, item: Value, kwargs: dict[str, Value], node: ast.AST) -> Taints:
    """Why what is sorted keeps an order of its own: the items came in one, and the key is coarse."""
    own = any(t.kind == "order" for t in item.taint)
    return order_at(frame, node) if own and _is_coarse(frame, item, kwargs, node) else NO_TAINT


def _is_coarse(frame: Frame, item: Value, kwargs: dict[str, Value], node: ast.AST) -> bool:
    key = kwargs.get("key", NONE)
    if key.tag == "ext":
        return key.data[0] in _COARSE
    if key.tag not in ("func", "partial"):
        return False
    from .calls import call_value

    with frame.collecting():
        return _tells_few_apart(call_value(frame, key, [item], {}, node))


def _tells_few_apart(value: Value) -> bool:
    """Whether a value, computed from one item, is the same for many: an answer, a number of something, a constant."""
    if value.tag == "const":
        return True
    if value.tag == "tuple":
        return all(map(_tells_few_apart, value.data))
    if value.tag == "ite":
        return all(map(_tells_few_apart, value.data[1:]))
    if value.tag != "expr":
        return False
    operator, operands = value.data
    return operator in _ANSWERS or (operator in _COMBINING and all(map(_tells_few_apart, operands)))
