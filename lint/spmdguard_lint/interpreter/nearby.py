"""Guess the class of an unknown receiver from the classes of its own module.

A parameter without annotation (``self.saver.finalize()``) is taken for an instance of a class of the same
module when that class alone there has the method and either the receiver is named after the class or the
method's name is no everyday one. The guess only adds a followed call; it never removes a finding.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ..names.symbols import ClassSymbol
from ..source.unparsing import unparse
from ..source.walking import walk
from ..values.evaluate import rank_dependent
from ..values.value import Value

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo
    from .frame import Frame
    from .machine import Machine

_DEPTH = 2
EVERYDAY = frozenset(
    [
        "get",
        "set",
        "put",
        "add",
        "pop",
        "update",
        "append",
        "extend",
        "insert",
        "remove",
        "clear",
        "copy",
        "close",
        "open",
        "read",
        "write",
        "save",
        "load",
        "step",
        "run",
        "start",
        "stop",
        "wait",
        "join",
        "send",
        "recv",
        "forward",
        "backward",
        "train",
        "eval",
        "reset",
        "compute",
        "log",
        "info",
        "warning",
        "error",
        "debug",
        "item",
        "items",
        "keys",
        "values",
        "to",
        "cpu",
        "cuda",
        "detach",
        "clone",
        "size",
        "numel",
        "view",
        "reshape",
        "sum",
        "mean",
        "max",
        "min",
        "sort",
        "index",
        "count",
        "split",
        "strip",
        "format",
        "encode",
        "decode",
        "result",
        "done",
        "cancel",
        "submit",
        "map",
        "filter",
        "apply",
        "call",
        "setup",
        "build",
        "init",
        "state_dict",
        "load_state_dict",
        "parameters",
        "named_parameters",
        "modules",
        "children",
        "zero_grad",
        "register",
        "process",
        "transform",
        "fit",
        "predict",
        "score",
        "sample",
        "next",
        "iter",
        "reduce",
        "gather",
        "scatter",
        "broadcast",
        "barrier",
        "sync",
        "flush",
        "seek",
        "tell",
        "exists",
        "mkdir",
        "unlink",
    ]
)


def find_nearby(machine: Machine, frame: Frame, receiver: Value, node: ast.Call) -> FunctionInfo | None:
    """The method that the call can only mean, or None."""
    if receiver.tag not in ("sym", "expr") or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    held = held_instance(machine, frame, node.func.value)
    if held is not None:
        return held.find_method(name)
    found: FunctionInfo | None = None
    for cls in frame.module.all_classes:
        method = cls.methods.get(name)
        if method is not None:
            if found is not None:
                return None
            found = method
    if found is None or found.cls is None:
        return None
    named_after = _is_named_after(receiver_name(node.func.value), found.cls)
    if not named_after and (name in EVERYDAY or found.cls is _own_class(frame)):
        return None
    return found


def _is_named_after(spoken: str, cls: ClassInfo) -> bool:
    return len(spoken) > 2 and spoken.lower().replace("_", "") in cls.name.lower().replace("_", "")


def iterated_instance(frame: Frame, iterated: Value, node: ast.AST) -> Value:
    """What a loop runs over, where that is unknown and named after the one class here with an ``__iter__``.

    The module must also call another method of the class by this name; it then is the instance that this call is for.
    """
    if iterated.tag != "sym" or iterated.trip or not isinstance(node, (ast.Name, ast.Attribute)):
        return iterated
    spoken = receiver_name(node)
    named = [
        cls for cls in frame.module.all_classes if "__iter__" in cls.methods and _is_named_after(spoken, cls)
    ]
    if len(named) != 1 or named[0] is _own_class(frame):
        return iterated
    methods = "|".join(re.escape(name) for name in named[0].methods if not name.startswith("__"))
    if not methods or not re.search(rf"\b{spoken}\.(?:{methods})\(", frame.module.source.text):
        return iterated
    from .parameters import symbolic_instance

    return symbolic_instance(frame, named[0], ("nearby", named[0].full_name))


def _own_class(frame: Frame) -> ClassInfo | None:
    """The class whose method is being read: its calls on other objects delegate, as a rule, to other classes."""
    function = frame.function
    while function is not None and function.cls is None:
        function = function.parent
    return function.cls if function is not None else None


def rank_of_nearby(frame: Frame, receiver: Value, name: str, node: ast.AST) -> Value | None:
    """``pipe.is_last`` of a parameter named after the class of the module that alone keeps this of the rank."""
    if receiver.tag != "sym" or receiver.taint or not isinstance(node, ast.Attribute):
        return None
    spoken = receiver_name(node.value).lower().replace("_", "")
    owners = [cls for cls in frame.module.all_classes if name in cls.self_assignments]
    if len(spoken) < 3 or len(owners) != 1 or spoken not in owners[0].name.lower():
        return None
    if owners[0] is _own_class(frame) or not _speaks_of_ranks(owners[0], name):
        return None
    from .parameters import symbolic_instance, template_field

    instance = symbolic_instance(frame, owners[0], ("nearby", owners[0].full_name))
    value = template_field(frame, instance, owners[0], name)
    return value if value is not None and value.tag in ("expr", "rank") and rank_dependent(value) else None


def _speaks_of_ranks(cls: ClassInfo, name: str, depth: int = 0) -> bool:
    """Whether what a class keeps under a name is computed from something that is called a rank, or kept as such."""
    for one in cls.self_assignments.get(name, ()) if depth < _DEPTH else ():
        given = one.value or one.source
        if given is None:
            continue
        kept = (node.attr for node in walk(given) if isinstance(node, ast.Attribute))
        if "rank" in unparse(given) or any(_speaks_of_ranks(cls, other, depth + 1) for other in kept):
            return True
    return False


def held_instance(machine: Machine, frame: Frame, receiver: ast.expr) -> ClassInfo | None:
    """The class of ``anything.name`` where one class of the module alone sets ``self.name = Class()``."""
    if not isinstance(receiver, ast.Attribute):
        return None
    owners = [cls for cls in frame.module.all_classes if receiver.attr in cls.self_assignments]
    if len(owners) != 1:
        return None
    for assignment in owners[0].self_assignments[receiver.attr]:
        value = assignment.value
        if value is None and isinstance(assignment.source, ast.Tuple) and assignment.index is not None:
            elements = assignment.source.elts
            value = elements[assignment.index] if assignment.index < len(elements) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            found = machine.resolve(frame.module, value.func.id)
            if isinstance(found, ClassSymbol):
                return found.info
    return None


def receiver_name(node: ast.expr) -> str:
    """The last name of the receiver expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
