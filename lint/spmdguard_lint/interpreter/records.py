"""Plain records: ``types.SimpleNamespace(...)`` and ``argparse.Namespace(...)``, whose fields are those they are given.

A record is an instance of a class without methods, so that its fields are read and written as those of others are.
"""

from __future__ import annotations

import ast

from ..names.classes import ClassInfo
from ..values.value import Value, expression
from .frame import Frame

RECORDS = ("types.SimpleNamespace", "argparse.Namespace")


def make_record(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A new record; one whose fields are not written in the call stays opaque."""
    from .calls import instantiate

    written = isinstance(node, ast.Call) and not node.args and all(word.arg for word in node.keywords)
    if not written or frame.state is None:
        return expression(f"call:{qualname}", [*args, *kwargs.values()])
    value = instantiate(frame, _class_of(frame, qualname), [], {}, node)
    for name, field in kwargs.items():
        frame.live.set_field(value.data[0], name, field)
    return value


def _class_of(frame: Frame, qualname: str) -> ClassInfo:
    known = frame.machine.records.get(qualname)
    if known is None:
        name = qualname.rpartition(".")[2]
        statement = ast.parse(f"class {name}: pass").body[0]
        assert isinstance(statement, ast.ClassDef)
        known = frame.machine.records[qualname] = ClassInfo(frame.module, statement, name, name, None, None)
    return known
