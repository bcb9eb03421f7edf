"""Parts of a model that is cut into stages: which parameters and modules there are is each stage's own affair.

With pipeline parallelism a stage may hold no expert, no embedding, no trainable parameter at all. Whether a list of
such parts is empty may thus differ between ranks. Mostly that is meant (a stage reduces what it has, among those that
have it too), so that the reason is a possible one, and a likely one only where a group is made: all ranks make it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.value import NO_TAINT, OF_A_STAGE, Taint, Taints, parts_of

if TYPE_CHECKING:
    from ..values.value import Place, Value
    from .frame import Frame

_CUT = r"\bmegatron\.core\b|\bpipeline_(?:model_)?parallel|\bPipelineModule\b|\bdistributed\.pipelining\b"


_PARTS = frozenset(
    f"{name}{what}" for name in ("", "named_") for what in ("parameters", "buffers", "modules", "children")
)


def note_part(frame: Frame, operator: str, item: Value, place: Place) -> Value:
    """The item; remembered where it is one of ``model.parameters()`` or the like."""
    if operator.removeprefix("call:").rpartition(".")[2] in _PARTS:
        frame.machine.model_parts[item.key] = place
    return item


def of_stage(frame: Frame, items: Value) -> Taints:
    """Why a list may be empty on one stage alone: what stands in it are parts of a model that is cut into stages."""
    noted = frame.machine.model_parts
    if not noted or frame.state is None:
        return NO_TAINT
    held = frame.state.heap.fields(items.data[0]).values()
    places = [noted[part.key] for item in held for part in parts_of(item) if part.key in noted]
    if not places or not frame.machine.text_says(_CUT):
        return NO_TAINT
    return frozenset({Taint("data", places[0], OF_A_STAGE, "possible")})
