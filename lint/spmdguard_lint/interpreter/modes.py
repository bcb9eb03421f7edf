"""Modules: training and evaluation mode (what ``model.eval()`` makes of ``self.training``), and chains of them."""

from __future__ import annotations

import ast

from ..facts import lookup as facts
from ..facts.build import MODULE
from ..facts.torch_core import LOADER
from ..facts.transformers import TRAINER
from ..values.value import NO_TAINT, Value
from .frame import Frame
from .threads import in_workers

_DEPTH = 3


def set_mode(frame: Frame, model: Value, mode: Value, depth: int = 0) -> None:
    """Set ``training`` of an object of a module class, and of the modules that its fields hold."""
    info = frame.machine.objects.info(model)
    if info.cls is None or not info.cls.is_module:
        return
    object_id = model.data[0]
    held = list(frame.live.heap.fields(object_id).values())
    frame.live.set_field(object_id, "training", mode)
    for value in held if depth < _DEPTH else ():
        if value.tag == "obj" and frame.machine.objects.info(value).kind == "instance":
            set_mode(frame, value, mode, depth + 1)


def made_of_library(
    frame: Frame, type_name: str, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> str:
    """What the library makes with these arguments behaves like; the workers of a loader are read on the way.

    A trainer of transformers seeds all generators of the process, with a seed from its arguments.

    ``nn.Sequential(a, b)`` communicates when it is called as its members do.
    """
    if type_name == LOADER:
        in_workers(frame, args, kwargs, node)
    if type_name == TRAINER:
        _seed_all(frame, kwargs.get("args", args[1] if len(args) > 1 else None))
    if type_name == MODULE and qualname.endswith(".Sequential"):
        for member in args:
            fact = facts.call_instance(member.data[0]) if member.tag == "extobj" else None
            if fact is not None and fact.op is not None:
                return str(member.data[0])
    return type_name


def _seed_all(frame: Frame, arguments: Value | None) -> None:
    why = NO_TAINT if arguments is None else frozenset(t for t in arguments.taint if t.kind == "rank")
    for library in ("torch", "numpy", "random"):
        frame.machine.seed_taints[library] = why
