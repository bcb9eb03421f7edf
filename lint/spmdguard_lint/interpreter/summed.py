"""Lengths that ranks sum up: who adds up how many items each rank has expects the ranks to have other numbers of them.

A loop over so many items then has another number of rounds on each rank. The length of a loader tells nothing: whoever
averages over batches sums it up although every rank has as many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..values.value import NO_TAINT, Taint, Taints, Value, constant, expression, parts_of
from .lengths import PARTS_OF_MODULES

if TYPE_CHECKING:
    from ..values.value import Place
    from .frame import Frame

_SIZES = ("attr:shape", "len", "call:size", "call:numel", "call:nelement")
_PIECES = frozenset(
    {"enumerate", "call:split", "call:chunk", "call:torch.split", "call:torch.chunk", "call:tqdm.tqdm"}
)
_SUMS = re.compile(r"(?:ReduceOp\.|\b)(?:SUM|AVG)$")
_LOADERS = re.compile(r"loader|batches|sampler|iterator", re.IGNORECASE)


def note_summed(
    frame: Frame, op: str, args: list[Value], kwargs: dict[str, Value], place: Place, text: str
) -> None:
    """Remember the lengths from which what is summed up over the ranks has been made."""
    how = kwargs.get("op", args[1] if len(args) > 1 else None)
    if op != "all_reduce" or (how is not None and not (how.tag == "ext" and _SUMS.search(how.data[0]))):
        return
    for value in (*args[:1], *(kwargs[name] for name in ("tensor",) if name in kwargs)):
        for key in _keys(value):
            frame.machine.summed.setdefault(key, Taint("data", place, f"what `{text}` sums up", "likely"))


def _keys(value: Value) -> Iterator[int]:
    """The keys of the lengths in a value, and of all items of the lists in it."""
    for part in parts_of(value):
        label = part.data[0] if part.tag == "sym" else None
        if isinstance(label, tuple) and label[:1] == ("contents",):
            yield from (key for _, key in label[-1])
        elif is_length(part):
            yield part.key


def is_length(part: Value) -> bool:
    """Whether a value is a length of data whose number of items nothing in the code tells."""
    if part.tag == "expr" and part.data[0] == "getitem":  # of a shape
        part = part.data[1][0]
    if part.tag != "expr" or part.data[0] not in _SIZES or not part.data[1]:
        return False
    of = part.data[1][0]
    if of.tag not in ("expr", "sym") or (of.tag == "expr" and of.data[0] in PARTS_OF_MODULES):
        return False
    return not any(_LOADERS.search(_name(inner)) for inner in parts_of(of))


def _name(part: Value) -> str:
    """The word by which a program knows a value: a parameter, an attribute, a key, what was called."""
    word = part.data[0] if part.data else ""
    if isinstance(word, tuple) and word:
        word = word[-1]
    return word if isinstance(word, str) else ""


def summed_up(frame: Frame, values: Iterable[Value]) -> Taints:
    """Why a number of rounds differs that is computed from lengths which the ranks have summed up."""
    summed = frame.machine.summed
    if not summed:
        return NO_TAINT
    return frozenset(
        summed[part.key]
        for value in values
        for part in parts_of(value)
        if part.key in summed and is_length(part)
    )


def as_many_as_summed(frame: Frame, iterated: Value) -> Taints:
    """The same of a loop over the items themselves, or over pieces of them."""
    if not frame.machine.summed:
        return NO_TAINT
    while iterated.tag == "expr" and iterated.data[0] in _PIECES and iterated.data[1]:
        iterated = iterated.data[1][0]
    if iterated.tag not in ("expr", "sym"):
        return NO_TAINT
    first = constant(0)
    asked = [expression(operator, (iterated,)) for operator in _SIZES]
    asked += [expression("call:size", (iterated, first)), expression("getitem", (asked[0], first))]
    return summed_up(frame, asked)
