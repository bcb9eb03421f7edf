"""Questions about what kind of thing a value is: the same on every rank, unless the rank itself decides."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from ..values.value import NO_TAINT, Taints, Value, operator_of, parts_of, retaint, union

if TYPE_CHECKING:
    from .frame import Frame


def is_subclass(cls: Value, base: Value) -> bool | None:
    """Whether one known class is a subclass of another, or of one of several; None where it cannot be told."""
    if base.tag == "tuple":
        verdicts = [is_subclass(cls, item) for item in base.data]
        return True if True in verdicts else None if None in verdicts else False
    if cls.tag == "class" and base.tag == "class":
        return base.data[0] in cls.data[0].mro()
    first = getattr(builtins, cls.data[0].rpartition(".")[2], None) if cls.tag == "ext" else None
    second = getattr(builtins, base.data[0].rpartition(".")[2], None) if base.tag == "ext" else None
    if isinstance(first, type) and isinstance(second, type):
        return issubclass(first, second)
    if cls.tag == "class" and isinstance(second, type):
        names = [one.rpartition(".")[2] for one in cls.data[0].external_bases()]
        bases = [getattr(builtins, one, None) for one in names]
        return any(isinstance(one, type) and issubclass(one, second) for one in bases)
    return False if isinstance(first, type) and base.tag == "class" else None


# Arguments that say where something lies, and in which form: they are no part of what it is.
PLACEMENT = frozenset({"device", "dtype", "device_type", "pin_memory", "non_blocking"})

DIMENSIONS = frozenset({"ndim", "dim", "ndimension"})
FORM = DIMENSIONS | {"element_size", "is_floating_point", "is_complex"}
_JOINING = frozenset({"call:torch.cat", "call:torch.concat", "call:torch.concatenate", "call:torch.stack"})
BY_CONTENT = frozenset({"data", "random", "time", "order", "exception", "signal", "filesystem", "synced"})


def _is_caught(value: Value) -> bool:
    """Whether a value is a caught exception, whose class says where it was raised."""
    return value.tag == "sym" and isinstance(value.data[0], tuple) and value.data[0][:1] == ("exception",)


def structural(value: Value) -> Value:
    """What asks for an object's kind, not its content: the same on every rank, unless the rank itself decides."""
    asked = value.data[1][0] if value.tag == "expr" and value.data[1] else value
    kept = frozenset(t for v in (asked, value) for t in _chosen_by(v) if t.kind not in BY_CONTENT)
    return value if kept == value.taint else retaint(value, kept, value.trip)


def _chosen_by(value: Value) -> Taints:
    """Why ranks may have different things in a value, not things of different contents."""
    if value.tag == "ite":
        condition, then, orelse = value.data
        return union(condition.taint, _chosen_by(then), _chosen_by(orelse))
    return value.taint if value.tag in ("rank", "local_rank") or _is_caught(value) else NO_TAINT


# Tensors of random numbers have the shape that was asked for.
DRAWN = frozenset(
    f"{root}.{name}"
    for root in ("torch", "numpy.random")
    for name in (
        "rand",
        "randn",
        "randint",
        "randperm",
        "normal",
        "uniform",
        "permutation",
        "rand_like",
        "randn_like",
    )
)


def of_form(name: str, receiver: Value, result: Value) -> Value:
    """What a tensor's form tells: no content, and as many dimensions however many rows a rank has."""
    kept = frozenset(t for t in result.taint if t.kind not in BY_CONTENT)
    return retaint(result, kept if name not in DIMENSIONS or _chosen(receiver) else NO_TAINT)


_SIZED = frozenset(
    f"{new}{name}"
    for new in ("", "call:new_")
    for name in ("zeros", "ones", "empty", "full", "arange", "linspace", "eye")
)


def of_size(frame: Frame, receiver: Value, result: Value) -> Value:
    """How many elements a tensor has: not what was drawn for them, or written into one of them by one rank alone.

    What random numbers have selected counts, and so does a number that was given as a size (``torch.zeros(n)``).
    """
    selected = receiver.trip or NO_TAINT
    sized = any(operator_of(part).rpartition(".")[2] in _SIZED for part in parts_of(receiver))
    inside = frozenset() if sized else frame.machine.contents_only
    kept = (t for t in result.taint if t in selected or (t.kind != "random" and t.place not in inside))
    return retaint(result, frozenset(kept))


def _chosen(value: Value) -> bool:
    """Whether a tensor is one of several, which may have other numbers of dimensions; one that was joined is not."""
    if value.tag == "ite":
        return True
    if value.tag != "expr" or value.data[0] in _JOINING:
        return False
    return any(_chosen(operand) for operand in value.data[1])
