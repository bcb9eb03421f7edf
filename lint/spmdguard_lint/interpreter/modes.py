"""Training and evaluation mode: what ``model.eval()`` makes of ``self.training`` in the model and its submodules."""

from __future__ import annotations

from ..values.value import Value
from .frame import Frame

_DEPTH = 3


def set_mode(frame: Frame, model: Value, mode: Value, depth: int = 0) -> None:
    """Set ``training`` of an object of a module class, and of the modules that its fields hold."""
    info = frame.machine.objects.info(model)
    if info.cls is None or not any(
        b.rpartition(".")[2].endswith("Module") for b in info.cls.external_bases()
    ):
        return
    object_id = model.data[0]
    held = list(frame.live.heap.get(object_id, {}).values())
    frame.live.set_field(object_id, "training", mode)
    for value in held if depth < _DEPTH else ():
        if value.tag == "obj" and frame.machine.objects.info(value).kind == "instance":
            set_mode(frame, value, mode, depth + 1)
