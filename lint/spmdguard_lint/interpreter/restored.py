"""What stands in a checkpoint: each rank reads its own file, which all of them have written at the same step."""

from __future__ import annotations

from ..values.value import Value, doubted, is_const, made_by, retaint
from .lengths import trip_taint

LOADS = frozenset({"call:torch.load", "call:torch.serialization.load"})
_LOOK_UP = frozenset({"getitem", "call:get"})


def restored(item: Value, receiver: Value, index: Value) -> Value:
    """An entry of a loaded state by its name.

    That the file has the rank in its name makes its numbers (the step, the epoch) hardly differ, and where it could not
    be read, there is no entry; a list that is gone through is taken for this rank's own data.
    """
    if not item.taint or not (is_const(index) and isinstance(index.data[0], str)) or not _is_loaded(receiver):
        return item
    return retaint(item, doubted(item.taint, "rank", "group-rank", "exception"), trip_taint(item))


def _is_loaded(value: Value) -> bool:
    while value.tag == "expr" and value.data[0] in _LOOK_UP:
        value = value.data[1][0]
    return made_by(value) in LOADS
