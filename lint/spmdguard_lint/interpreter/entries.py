"""Dicts to which both arms of a branch have added the same keys: which arm a rank took does not tell their length."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable

from ..values.value import FALSE, Taints, Value, retaint, symbol, union
from .frame import Frame
from .heap import Fields
from .state import VERSION, State

_REST = "*"


def even_out(frame: Frame, node: ast.If, before: State, first: State, second: State) -> None:
    """Take the condition of a branch out of the reasons for the length of what both its arms have filled alike."""
    joined = frame.live
    for object_id, _ in list(before.heap.differing(joined.heap)):
        if not isinstance(object_id, tuple) or object_id[0] != "dict":
            continue
        arms = (first.heap.get(object_id), second.heap.get(object_id))
        old = before.heap.get(object_id)
        if old is None or not _alike(node, old, *arms):
            continue
        held = next((v for v in _values(before) if v.tag == "obj" and v.data[0] == object_id), None)
        trip = union(frame.path_taint(), (held.trip or frozenset()) if held is not None else frozenset())
        _give_length(joined, object_id, trip)
        versions = [arm.heap.fields((VERSION, object_id)).get("at") for arm in (first, second)]
        known = [version for version in versions if version is not None]
        label = ("evened", frame.place(node), *(version.key for version in known))
        emptied = joined.heap.fields((VERSION, object_id)).get("emptied", FALSE)
        at = symbol(label, union(*(v.taint for v in known)))
        joined.heap[(VERSION, object_id)] = {"at": at, "emptied": emptied}


def _alike(node: ast.If, old: Fields, one: Fields | None, other: Fields | None) -> bool:
    """Whether both arms have added the same keys, each on all ways through it."""
    if one is None or other is None or one.keys() != other.keys() or _REST in one:
        return False
    added = one.keys() - old.keys()
    return bool(added) and all(_fills(arm, name) for name in added for arm in (node.body, node.orelse))


def _fills(body: Iterable[ast.stmt], name: str) -> bool:
    """Whether statements surely put something under a key."""
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                key = target.slice if isinstance(target, ast.Subscript) else None
                if isinstance(key, ast.Constant) and repr(key.value) == name:
                    return True
        elif (
            isinstance(statement, ast.If) and _fills(statement.body, name) and _fills(statement.orelse, name)
        ):
            return True
    return False


def _values(state: State) -> Iterable[Value]:
    yield from state.variables.values()
    for _, fields in state.heap.items():
        yield from fields.values()


def _give_length(state: State, object_id: Hashable, trip: Taints) -> None:
    def changed(value: Value) -> Value:
        same = value.tag == "obj" and value.data[0] == object_id
        return retaint(value, value.taint, trip) if same else value

    state.variables.update({name: changed(value) for name, value in state.variables.items()})
    for holder, fields in state.heap.items():
        if any(value.tag == "obj" and value.data[0] == object_id for value in fields.values()):
            state.heap[holder] = {name: changed(value) for name, value in fields.items()}
