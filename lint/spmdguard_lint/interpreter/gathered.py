"""Lists that were gathered from all ranks, beside the share that each rank has given to them.

Terminology: what ``everything = gather_object(mine)`` gives is as long as the shares of all ranks together. A list that
one rank makes from ``everything`` and sends to the others is then longer than their own shares, so a placeholder of
``len(mine)`` entries is too short for it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..values.value import Value, expression, parts_of
from .contents import is_container
from .frame import Frame

if TYPE_CHECKING:
    from ..facts.fact import Fact

SHORT = "as-many-as-own-share"
_GATHERS = frozenset({"all_gather_object", "gather_object", "all_gather"})


def note_gathered(frame: Frame, fact: Fact, args: list[Value], result: Value) -> None:
    """Remember how long the share is that a rank gives to what a call gathers and returns."""
    if fact.op in _GATHERS and args and not fact.buffers and not fact.outputs:
        from .iterating import length_of

        frame.machine.gathered[result.key] = length_of(frame, args[0]).key


def share_of_gathered(frame: Frame, value: Value) -> Value | None:
    """The number of entries of a list, where one arm has made it from all shares and the other repeats its own."""
    if value.tag != "ite" or not frame.machine.gathered:
        return None
    condition, *arms = value.data
    for sent, placeholder in (arms, arms[::-1]):
        share = _repeated(frame, placeholder)
        if share is None or sent.tag not in ("expr", "sym") or _is_cut(sent):
            continue
        if any(frame.machine.gathered.get(part.key) == share for part in parts_of(sent)):
            return expression(SHORT, (condition,))
    return None


def _repeated(frame: Frame, value: Value) -> Hashable:
    """How often ``[x] * n`` repeats its item; None for any other list."""
    from .containers import fields_of

    if not is_container(frame, value):
        return None
    repeated = frame.machine.repeated.get(value.data[0])
    return repeated.times.key if repeated is not None and repeated.fields is fields_of(frame, value) else None


def _is_cut(value: Value) -> bool:
    return value.tag == "expr" and value.data[0] in ("slice", "getitem")
