"""Abstract states: local variables and heap objects, their join at branches and their widening at loops.

Terminology: a *state* maps local names to values and heap objects to their fields. Heap objects are named
by their allocation site; copying a state copies the names and what has changed in the heap, an object's fields are
copied when written. Cost: a join is linear in the number of names and fields that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..values.value import (
    FALSE,
    NO_TAINT,
    NONE,
    Taints,
    Value,
    alternatives,
    choice,
    join_trip,
    one_of_made,
    retaint,
    symbol,
    union,
)
from .heap import Fields, Heap, differing

_GROUP = "torch.distributed.ProcessGroup"
VERSION = "version"
CELL = "cell"  # a variable that other functions than its own assign: a global one, or one of a closure
KEPT = "kept"  # what a function with a cache keeps under one key
MADE = symbol("made")  # the version of a container that nothing has changed
_MADE: Fields = {"at": MADE, "emptied": FALSE}
NOT_KEPT: Fields = {"value": FALSE, "result": NONE}


class State:
    """Variables of the current frame and fields of all heap objects."""

    __slots__ = ("heap", "variables")

    def __init__(self, variables: dict[str, Value], heap: Heap | None = None) -> None:
        self.variables = variables
        self.heap = Heap() if heap is None else heap

    def copy(self) -> State:
        return State(dict(self.variables), self.heap.copy())

    def field(self, object_id: Hashable, name: str) -> Value | None:
        fields = self.heap.get(object_id)
        return None if fields is None else fields.get(name)

    def set_field(self, object_id: Hashable, name: str, value: Value) -> None:
        fields = dict(self.heap.fields(object_id))
        fields[name] = value
        self.heap[object_id] = fields

    def replace_everywhere(self, old: Value, new: Value) -> None:
        """Give a value that was changed in place to every name and field that holds it.

        Values are equal to themselves alone, so that ``in`` looks for the very same one.
        """
        for name, value in self.variables.items():
            if value is old:
                self.variables[name] = new
            elif value.tag == "tuple" and old in value.data:
                self.variables[name] = with_item(value, old, new)
        for object_id, fields in self.heap.items():
            if old in fields.values():
                self.heap[object_id] = {k: new if v is old else v for k, v in fields.items()}


def with_item(whole: Value, old: Value, new: Value) -> Value:
    """A tuple (the arguments behind a star) in which one item was changed in place."""
    items = tuple(new if item is old else item for item in whole.data)
    key = ("tuple", *(item.key for item in items))
    return Value("tuple", items, union(*(item.taint for item in items)), whole.trip, key, whole.size)


def join(
    first: State | None, second: State | None, condition: Value, extra: Taints = NO_TAINT
) -> State | None:
    """The state after a branch; ``condition`` chose ``first``."""
    if first is None or second is None:
        return first or second

    def merge(a: Value, b: Value) -> Value:
        if a is b:
            return a
        merged = choice(condition, a, b)
        if extra and a.key != b.key:
            merged = retaint(merged, union(merged.taint, extra), merged.trip)
        return merged

    joined = State(
        _merge_names(first.variables, second.variables, merge),
        _merge_heaps(first.heap, second.heap, merge, condition.taint),
    )
    if condition.taint:
        _groups_of_one_arm(joined, first, second, condition.taint)
    return joined


def _groups_of_one_arm(joined: State, first: State, second: State, why: Taints) -> None:
    """Process groups that one arm alone has given a name: which one a rank holds, the condition has decided."""
    places = [(joined.variables, first.variables, second.variables)]
    for object_id, fields in first.heap.differing(second.heap):
        one = first.heap.get(object_id)
        if one is not None:
            places.append((joined.heap[object_id], one, fields))
    for merged, one, other in places:
        for name in one.keys() ^ other.keys():
            value = merged[name]
            if value.tag == "extobj" and value.data[0] == _GROUP:
                merged[name] = retaint(value, union(value.taint, why), value.trip)


def _merge_names(
    first: dict[str, Value], second: dict[str, Value], merge: Callable[[Value, Value], Value]
) -> dict[str, Value]:
    if first is second:
        return first
    result = dict(first)
    for name, value in differing(first, second):
        other = first.get(name)
        result[name] = value if other is None else merge(other, value)
    return result


def _merge_heaps(
    first: Heap,
    second: Heap,
    merge: Callable[[Value, Value], Value],
    why: Taints,
) -> Heap:
    result = first.copy()
    for object_id, fields in first.differing(second):
        other = first.get(object_id)
        if why and _is_symbolic(object_id):
            other, fields = _unwritten(object_id, other or {}, fields)
        if other is None:
            before = before_change(object_id)
            result[object_id] = fields if before is None else _merge_names(before, fields, merge)
        else:
            merged = _merge_names(other, fields, merge)
            result[object_id] = _filled(object_id, other, fields, merged, why)
    for object_id in first.missing(second):
        before = before_change(object_id)
        if why and _is_symbolic(object_id):
            before = _unwritten(object_id, first[object_id], {})[1]
        if before is not None:
            result[object_id] = _merge_names(first[object_id], before, merge)
    return result


def _unwritten(object_id: Hashable, first: Fields, second: Fields) -> tuple[Fields, Fields]:
    """The fields of an object in two arms, each with what it held before where the other arm alone has written."""
    names = first.keys() ^ second.keys()
    before = {name: symbol(("before", object_id, name)) for name in names}
    return {**before, **first}, {**before, **second}


def _filled(object_id: Hashable, first: Fields, second: Fields, merged: Fields, why: Taints) -> Fields:
    """The items of a dict that two arms have filled in another order, each as its own ranks see them."""
    order = frozenset(t._replace(kind="order") for t in why if t.kind in ("rank", "group-rank", "random"))
    is_dict = isinstance(object_id, tuple) and object_id[0] == "dict"
    if not is_dict or not order or list(first) == list(second) or first.keys() != second.keys():
        return merged
    return {name: retaint(value, union(value.taint, order), value.trip) for name, value in merged.items()}


def before_change(object_id: Hashable) -> Fields | None:
    """What a version or a variable held before its first change in this run; None for other objects."""
    if type(object_id) is not tuple:
        return None
    if object_id[0] == VERSION:
        return _MADE
    if object_id[0] == KEPT:
        return NOT_KEPT
    return {"value": symbol((*object_id, "before"))} if object_id[0] == CELL else None


_REFERENCES = frozenset(
    {"obj", "func", "class", "ext", "extobj", "module", "partial", "bound", "ite", "tuple"}
)


def widen(entry: State, back: State, label: Hashable) -> tuple[State, bool]:
    """The loop head that covers entry and back edge, and whether it differs from the entry."""
    changed = False

    def merge(name: str, a: Value, b: Value) -> Value:
        nonlocal changed
        if a is b or (a.key == b.key and a.taint == b.taint and a.trip == b.trip):
            return a
        changed = changed or not _plain(a) or not _plain(b)
        taint = union(a.taint, b.taint)
        trip = join_trip(a.trip, b.trip)
        if a.key == b.key:
            return retaint(a, taint, trip)
        if a.tag in _REFERENCES or b.tag in _REFERENCES:
            either = one_of(a, b, (label, name))
            if either is not None:
                return retaint(either, taint, trip)
        return symbol(one_of_made(a, b, (label, name)), taint, trip)

    variables = dict(entry.variables)
    for name, value in back.variables.items():
        known = entry.variables.get(name)
        if known is None:
            variables[name] = value
            changed = changed or value.tag not in ("func", "class", "ext", "module")
        else:
            variables[name] = merge(name, known, value)
    heap = entry.heap.copy()
    for object_id, fields in entry.heap.differing(back.heap):
        known_fields = entry.heap.get(object_id)
        if known_fields is None:
            known_fields = before_change(object_id)
        if known_fields is None:
            heap[object_id] = fields
            changed = changed or _is_symbolic(object_id)
        elif known_fields is not fields:
            merged = dict(known_fields)
            for name, value in differing(known_fields, fields):
                other = known_fields.get(name)
                if other is None:
                    merged[name] = value
                    changed = True
                else:
                    merged[name] = merge(f"{object_id}.{name}", other, value)
            heap[object_id] = merged
    return State(variables, heap), changed


def _is_symbolic(object_id: Hashable) -> bool:
    """Whether an object was there before the loop, though nothing had been written into it yet."""
    return isinstance(object_id, tuple) and object_id[:1] == ("symbolic",)


def _plain(value: Value) -> bool:
    """A number or text that no rank-varying reason touches: its exact value is given up without another round."""
    return value.tag in ("const", "sym", "expr") and not value.taint and not value.trip


def one_of(first: Value, second: Value, label: Hashable) -> Value | None:
    """A reference that may be any of those of two values, in a form that does not grow from round to round."""
    found: dict[Hashable, Value] = {}
    for value in (*alternatives(first), *alternatives(second)):
        if value.tag in _REFERENCES or value.tag == "const":
            found.setdefault(value.key, value)
    values = list(found.values())
    if len(values) > 4 or not any(v.tag in _REFERENCES for v in values):
        return None
    result = values[-1]
    for position, value in enumerate(reversed(values[:-1])):
        result = choice(symbol((label, "one-of", position)), value, result)
    return result


def same(first: State, second: State) -> bool:
    """Whether two loop heads say the same (then the fixpoint is reached)."""

    def equal(a: dict[str, Value], b: dict[str, Value]) -> bool:
        if a is b:
            return True
        if a.keys() != b.keys():
            return False
        return all(
            v is b[k] or (v.key == b[k].key and v.taint == b[k].taint and v.trip == b[k].trip)
            for k, v in a.items()
        )

    if not equal(first.variables, second.variables):
        return False
    if first.heap.missing(second.heap) or second.heap.missing(first.heap):
        return False
    return all(equal(first.heap[key], fields) for key, fields in first.heap.differing(second.heap))
