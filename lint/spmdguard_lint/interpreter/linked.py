"""Walks along a chain of objects (``while node is not None: ...; node = node.next``), read object by object.

Where a chain is known, what is called for each of its objects is known too, and which ranks have an object more. A
walk that cannot be read to its end is read as any other loop. Cost: one reading of the body for each object.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable

from ..source.walking import walk
from ..values.value import NONE, Value, alternatives, choice, is_const
from .comparisons import compare
from .expressions import text_of, truthiness
from .frame import Frame
from .statements import branch, execute_block

MAX_OBJECTS = 8


def walked(frame: Frame, node: ast.While) -> bool:
    """Read a walk along a chain of the project's own objects; False where it is none, or its end is not known."""
    name = _walking(node)
    if name is None or frame.state is None or not _is_known(frame, frame.state.variables.get(name)):
        return False
    before, mark = frame.state.copy(), len(frame.path)
    with frame.collecting() as nodes:
        whole = _from_here(frame, node, name, 0)
    if not whole:
        frame.state = before
        del frame.path[mark:]
        return False
    frame.out.extend(nodes)
    return True


def _walking(node: ast.While) -> str | None:
    """The name that goes from object to object; None where a loop does something else, or is left early."""
    inside = [inner for statement in node.body for inner in walk(statement)]
    if node.orelse or any(isinstance(inner, (ast.Break, ast.Continue)) for inner in inside):
        return None
    asked = {part.id for part in walk(node.test) if isinstance(part, ast.Name)}
    for inner in inside:
        for target, value in _assigned(inner) if isinstance(inner, ast.Assign) else ():
            source = value.value if isinstance(value, ast.Attribute) else None
            if (
                isinstance(target, ast.Name)
                and isinstance(source, ast.Name)
                and target.id == source.id in asked
            ):
                return target.id
    return None


def _assigned(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with their values; ``a, b = b, b.next`` item by item."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _is_known(frame: Frame, value: Value | None) -> bool:
    """Whether a value is an object that was made in what is read, or None on the ranks that have none."""
    found = [] if value is None else [one for one in alternatives(value) if one.key != NONE.key]
    return bool(found) and all(_is_made(frame, one) for one in found)


def _is_made(frame: Frame, value: Value) -> bool:
    if value.tag != "obj":
        return False
    info = frame.machine.objects.info(value)
    return info.kind == "instance" and not info.symbolic


def _from_here(frame: Frame, node: ast.While, name: str, count: int) -> bool:
    """Read the walk from the object at hand; tells whether its end was reached."""
    if frame.state is not None and name in frame.state.variables:
        frame.state.variables[name] = _settled(frame.state.variables[name], {})
    condition = _goes_on(frame, node.test, name)
    if frame.state is None or (is_const(condition) and not condition.data[0]):
        return True
    value = frame.state.variables.get(name)
    if count >= MAX_OBJECTS or value is None or not _is_known(frame, value):
        return False
    if is_const(condition):
        return _one(frame, node, name, count, value)
    if value.tag != "ite" or NONE.key not in (value.data[1].key, value.data[2].key):
        return False
    there = value.data[2] if value.data[1].key == NONE.key else value.data[1]
    ends = [True]

    def more() -> None:
        ends[0] = _one(frame, node, name, count, there)

    branch(frame, node.test, condition, more, lambda: None, "if", text_of(node.test))
    return ends[0]


def _settled(value: Value, known: dict[Hashable, bool]) -> Value:
    """A choice without those inside of it that the same condition has decided already."""
    if value.tag != "ite":
        return value
    condition, then, orelse = value.data
    if condition.key in known:
        return _settled(then if known[condition.key] else orelse, known)
    arms = (_settled(arm, {**known, condition.key: holds}) for arm, holds in ((then, True), (orelse, False)))
    return choice(condition, *arms)


def _goes_on(frame: Frame, test: ast.expr, name: str) -> Value:
    """The condition of the walk; an object without a truth of its own is true."""
    value = frame.live.variables.get(name, NONE)
    if isinstance(test, ast.Name) and not any(_has_truth(frame, one) for one in alternatives(value)):
        return compare("is not", value, NONE)
    return truthiness(frame, test)


def _has_truth(frame: Frame, value: Value) -> bool:
    cls = frame.machine.objects.info(value).cls if value.tag == "obj" else None
    return cls is not None and any(cls.find_method(name) is not None for name in ("__bool__", "__len__"))


def _one(frame: Frame, node: ast.While, name: str, count: int, value: Value) -> bool:
    """Read the body for one object, and the walk from the next one on."""
    frame.live.variables[name] = value
    execute_block(frame, node.body)
    return frame.state is None or _from_here(frame, node, name, count + 1)
