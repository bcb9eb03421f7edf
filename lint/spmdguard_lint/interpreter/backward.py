"""Which backward passes exchange gradients."""

from __future__ import annotations

from ..facts.build import MODULE
from ..values.value import Value, parts_of
from .frame import Frame


def exchanges(frame: Frame, loss: Value, given: list[Value]) -> bool:
    """Whether ``loss.backward(...)`` exchanges gradients: the loss stems from a wrapped model, as far as is known."""
    synced = any(t.kind == "synced" for value in (loss, *given) for t in value.taint)
    return synced or _of_wrapped_model(frame, loss)


def _of_wrapped_model(frame: Frame, loss: Value) -> bool:
    """Whether an unknown loss may stem from a model that this file wraps.

    A loss that the module itself has computed (``model.module(x)``) does not: the hooks of a wrapper expect to be
    called only after the wrapper's own forward.
    """
    if loss.tag not in ("expr", "sym") or loss.taint:
        return False
    if any(part.tag == "extobj" and part.data[0] == MODULE for part in parts_of(loss)):
        return False
    return frame.machine.reach.wraps(frame.module)
