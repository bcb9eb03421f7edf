"""Which backward passes exchange gradients."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..facts.build import MODULE
from ..names.dotted import called_name
from ..source.walking import walk
from ..values.value import Value, parts_of
from .frame import Frame

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo


def exchanges(frame: Frame, loss: Value, given: list[Value]) -> bool:
    """Whether ``loss.backward(...)`` exchanges gradients: the loss stems from a wrapped model, as far as is known."""
    synced = any(t.kind == "synced" for value in (loss, *given) for t in value.taint)
    return synced or _of_wrapped_model(frame, loss)


def _of_wrapped_model(frame: Frame, loss: Value) -> bool:
    """Whether an unknown loss may stem from a model that this file wraps.

    One that an unknown function was given to compute with does, whatever else is known of the loss. A loss that the
    module itself has computed (``model.module(x)``) does not: the hooks of a wrapper expect to be called only after
    the wrapper's own forward.
    """
    if loss.tag not in ("expr", "sym"):
        return False
    objects = [part for part in parts_of(loss) if part.tag == "extobj"]
    if any(part.data[0] == MODULE for part in objects):
        return False
    if any(_synchronises(part.data[0]) for part in objects):
        return True
    return not loss.taint and frame.machine.reach.wraps(frame.module) and not _wrapped_only_later(frame, loss)


_WRAPPERS = frozenset(
    {
        "DDP",
        "DistributedDataParallel",
        "FSDP",
        "FullyShardedDataParallel",
        "fully_shard",
        "prepare",
        "initialize",
    }
)


def _wrapped_only_later(frame: Frame, loss: Value) -> bool:
    """Whether a loss stems from a parameter that its function wraps only behind the call that computes with it."""
    labels = [part.data[0] for part in parts_of(loss) if part.tag == "sym"]
    names = {label[1:3] for label in labels if isinstance(label, tuple) and label[:1] == ("param",)}
    inner: Frame | None = None
    while names:
        if frame.function is not None and inner is not None and inner.called_at is not None:
            row = inner.called_at.row
            own = {name for function, name in names if function == frame.function.full_name}
            if any(line > row for line in _wraps(frame.function, own)):
                return not any(line <= row for line in _wraps(frame.function, own))
        if frame.caller is None:
            return False
        inner, frame = frame, frame.caller
    return False


def _wraps(function: FunctionInfo, names: set[str]) -> list[int]:
    """The rows in which a function wraps what has one of these names."""
    calls = (node for node in walk(function.node) if called_name(node) in _WRAPPERS) if names else ()
    return [
        call.lineno
        for call in calls
        if isinstance(call, ast.Call)
        and any(isinstance(given, ast.Name) and given.id in names for given in _given(call))
    ]


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("module", "model"))]


def _synchronises(type_name: str) -> bool:
    """Whether calling an instance of a type prepares an exchange of gradients."""
    fact = facts.call_instance(type_name)
    return fact is not None and fact.event == "synced-forward"
