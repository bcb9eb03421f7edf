"""Enums of the project: each member is a constant that equals itself alone, whatever ``auto()`` gives it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..values.value import Member, Value, choice, constant, is_const, is_split, symbol

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from .frame import Frame


def member_of(frame: Frame, cls: ClassInfo, name: str) -> Value | None:
    """The constant for a member; None where the class is no enum, has no such member, or its members are literals."""
    found = cls.find_class_assignment(name) if cls.is_enum and not name.startswith("_") else None
    if found is None or (cls.has_literal_members and isinstance(found[1], ast.Constant)):
        return None
    frame.machine.enums[found[0].full_name] = found[0]
    return constant(Member(found[0].full_name, name))


def member_with_value(frame: Frame, cls: ClassInfo, value: Value) -> Value:
    """What ``Role(value)`` is: the member that has the value."""
    if is_split(value):
        condition, then, orelse = value.data
        return choice(condition, member_with_value(frame, cls, then), member_with_value(frame, cls, orelse))
    if is_const(value):
        if isinstance(value.data[0], Member):
            return value
        for name, given in cls.class_assignments.items():
            if isinstance(given, ast.Constant) and given.value == value.data[0]:
                return member_of(frame, cls, name) or value
    return symbol(("member", cls.full_name, value.key), value.taint)


def member_attribute(frame: Frame, member: Member, receiver: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of a member: its name, its value, a method or property of its class."""
    cls = frame.machine.enums[member.owner]
    if name == "name":
        return constant(member.name)
    if name == "value":
        return _value_of(cls, member)
    method = cls.find_method(name)
    if method is None:
        return None
    from .attributes import read_method

    return read_method(frame, method, receiver, node)


def _value_of(cls: ClassInfo, member: Member) -> Value:
    """What a member was given; ``auto()`` counts from 1 where all are given by it."""
    given = cls.class_assignments[member.name]
    if isinstance(given, ast.Constant):
        return constant(given.value)
    calls = [isinstance(one, ast.Call) for one in cls.class_assignments.values()]
    if all(calls):
        return constant([*cls.class_assignments].index(member.name) + 1)
    return symbol(("member-value", member.owner, member.name))
