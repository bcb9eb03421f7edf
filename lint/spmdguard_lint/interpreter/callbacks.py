"""Lists of callbacks that some ranks have more of: each item is called once, under the condition it was added under.

A loop over such a list runs another number of rounds on each rank, and no rank parts from the others if what only some
have does not communicate. So the loop is read item by item, where it is known which items there are and which ranks
added them: the list was written out and appended to, outside of loops, under conditions that this function shows.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..source.walking import walk
from ..values.value import Taints, Value, alternatives, doubted, symbol, union
from .contents import is_container, structure
from .expressions import text_of, tuple_value
from .frame import Frame

Path = tuple[tuple[Value, bool], ...]
_CALLABLE = frozenset({"func", "bound", "partial", "wrapped", "obj", "class"})
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_MOST = 8


class Added(NamedTuple):
    """A callback that was appended, and the conditions under which it was; None where they are not known."""

    item: Value
    path: Path | None


def note_extended(frame: Frame, receiver: Value, more: Value, node: ast.AST) -> None:
    """A list was extended by another one; its items count where all are written out."""
    from .containers import fields_of

    fields = fields_of(frame, more) if is_container(frame, more) else {}
    for position in map(str, range(len(fields))):
        if position in fields:
            note_appended(frame, receiver, fields[position], node, position)


def note_appended(frame: Frame, receiver: Value, item: Value, node: ast.AST, position: str = "") -> None:
    """Something was appended to a list; what can be called is remembered with its conditions."""
    known = frame.machine.appended.setdefault(receiver.data[0], {})
    place = (frame.place(node), position)
    known.pop(place, None)  # the last one comes last
    known[place] = Added(item, None if frame.loops or item.tag not in _CALLABLE else tuple(frame.path))


def each_callback(frame: Frame, node: ast.For | ast.AsyncFor, iterated: Value) -> bool:
    """Run a loop over callbacks item by item where ranks have different ones; False where it is no such loop."""
    numbered = iterated.tag == "expr" and iterated.data[0] == "enumerate" and len(iterated.data[1]) == 1
    listed: Value = iterated.data[1][0] if numbered else iterated
    added = _understood(frame, node, listed)
    if added is None:
        return False
    from .assignment import assign
    from .outcomes import conjunction
    from .statements import branch, execute_block

    place = frame.place(node)
    for item, path in added:
        value = tuple_value([symbol(("index", place)), item]) if numbered else item

        def call(value: Value = value) -> None:
            assign(frame, node.target, value)
            execute_block(frame, node.body)

        if frame.state is None:
            break
        if path:
            only = conjunction(path, place)
            branch(frame, node, only, call, lambda: None, "with", text_of(node.iter))
        else:
            call()
    execute_block(frame, node.orelse)
    return True


def doubted_of_many(frame: Frame, listed: Value, trip: Taints) -> Taints:
    """Why ranks have more or fewer objects of several classes: hardly a reason where it is not known of which.

    What an extra hook of one rank does is mostly its own business, whatever the hooks of all ranks do.
    """
    if not trip or not is_container(frame, listed):
        return trip
    from .containers import fields_of

    classes = {
        id(frame.machine.objects.info(one).cls)
        for item in fields_of(frame, listed).values()
        for one in alternatives(item, _MOST)
        if one.tag == "obj" and frame.machine.objects.info(one).kind == "instance"
    }
    if len(classes) < 2:
        return trip
    return doubted(trip, "rank", "group-rank")


def _understood(frame: Frame, node: ast.For | ast.AsyncFor, listed: Value) -> list[Added] | None:
    """The callbacks of a list in order, if ranks have different ones and all is known of them."""
    if not is_container(frame, listed) or frame.machine.objects.info(listed).kind != "list":
        return None
    known = frame.machine.appended.get(listed.data[0])
    reasons = structure(frame, listed) if known else None
    if not known or not reasons or frame.state is None:
        return None
    from .containers import fields_of

    fields = fields_of(frame, listed)
    written = [Added(fields[name], ()) for name in map(str, range(len(fields))) if name in fields]
    added = [*written, *known.values()]
    if len(added) > _MOST or any(isinstance(part, _LEAVING) for stmt in node.body for part in walk(stmt)):
        return None
    there = {one.key for item in fields.values() for one in alternatives(item, _MOST)}
    if there != {one.item.key for one in added} or not _explained(reasons, added):
        return None
    return added if all(one.item.tag in _CALLABLE for one in added) else None


def _explained(reasons: Taints, added: list[Added]) -> bool:
    """Whether the conditions under which items were added are all the reasons for which ranks have different ones."""
    if any(one.path is None for one in added):
        return False
    why = union(*(condition.taint for one in added for condition, _ in one.path or ()))
    return {(t.place, t.text) for t in reasons} <= {(t.place, t.text) for t in why}
