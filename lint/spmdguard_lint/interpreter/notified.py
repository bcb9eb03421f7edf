"""Hooks of callbacks that nobody can read, called on some ranks alone: what they may set in what they are given.

A trainer that hands its control object to `callback.on_evaluate(control)` does so for the callback to set a flag there
(`control.should_save`). Where the rank decides whether the hook is called, it decides about the flag too. Hooks that
all ranks call are taken to set the same everywhere, and those of loggers to set nothing.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ..values.value import choice, negate, symbol
from .expressions import text_of

if TYPE_CHECKING:
    from ..values.value import Value
    from .frame import Frame

_HOOK = re.compile(r"on_[a-z]\w*|call_event|fire_event|trigger_event")
_CALLBACK = re.compile(r"(?:\w*_)?(?:cb|callback|hook|listener)")
_FLAG = re.compile(r"(?:^|_)(?:should|stop|abort|want|need|request|interrupt|quit|early)")
_SAYING = re.compile(
    r"log|writer|track|progress|metric|report|print|wandb|board|monitor|display|bar\b", re.IGNORECASE
)


def notified(frame: Frame, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """A hook of an unknown callback was called: on some ranks alone, the flags of its arguments differ from now on."""
    hook = _HOOK.fullmatch(name) or _CALLBACK.fullmatch(name)
    only = _rank_condition(frame) if hook is not None and frame.state is not None else None
    if only is None:
        return
    if isinstance(node, ast.Call) and _SAYING.search(text_of(node.func)):
        return
    place = frame.place(node)
    for value in (*args, *kwargs.values()):
        if value.tag != "obj" or frame.machine.objects.info(value).kind != "instance":
            continue
        for field, before in _flags(frame, value).items():
            set_there = symbol(("set by a hook", place, field))
            frame.live.set_field(value.data[0], field, choice(only, set_there, before))


def _flags(frame: Frame, instance: Value) -> dict[str, Value]:
    """The flags of an object: by its fields where they are known, or else by what its class sets them to."""
    known = frame.live.heap.fields(instance.data[0])
    found = {name: value for name, value in known.items() if _FLAG.search(name) and _is_flag(value)}
    cls = frame.machine.objects.info(instance).cls
    for owner in cls.mro() if cls is not None else ():
        written: list[tuple[str, list[ast.expr | None]]] = [
            (name, [value]) for name, value in owner.class_assignments.items()
        ]
        written += [(name, [one.value for one in many]) for name, many in owner.self_assignments.items()]
        for name, values in written:
            if _FLAG.search(name) and name not in known and any(map(_is_switch, values)):
                found.setdefault(name, symbol(("before a hook", instance.data[0], name)))
    return found


def _is_switch(value: ast.AST | None) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def _is_flag(value: Value) -> bool:
    """Whether a field is true or false, or was set by a hook before."""
    if value.tag == "ite":
        return all(map(_is_flag, value.data[1:]))
    if value.tag == "const":
        return isinstance(value.data[0], bool)
    return (
        value.tag == "sym" and isinstance(value.data[0], tuple) and str(value.data[0][0]).endswith(" a hook")
    )


def _rank_condition(frame: Frame) -> Value | None:
    """The innermost condition on the rank under which a call is made, here or where the function was called."""
    current: Frame | None = frame
    while current is not None:
        for condition, holds in reversed(current.path):
            if any(t.kind in ("rank", "group-rank") and t.certainty != "possible" for t in condition.taint):
                return condition if holds else negate(condition)
        current = current.caller
    return None
