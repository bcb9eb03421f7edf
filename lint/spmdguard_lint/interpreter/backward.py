"""Which backward passes exchange gradients."""

from __future__ import annotations

from ..facts import lookup as facts
from ..facts.build import MODULE
from ..values.value import Value, parts_of
from .frame import Frame


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
    return not loss.taint and frame.machine.reach.wraps(frame.module)


def _synchronises(type_name: str) -> bool:
    """Whether calling an instance of a type prepares an exchange of gradients."""
    fact = facts.call_instance(type_name)
    return fact is not None and fact.event == "synced-forward"
