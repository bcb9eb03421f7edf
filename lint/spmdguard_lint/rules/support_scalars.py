"""Dtypes of tensors made of Python numbers: a whole number gives int64, a float float32, a truth bool.

Terminology: a number is *inferred* from where no dtype is named: ``torch.tensor(total / n if n else 0)`` is a float on
a rank that has seen something, and a whole number on one that has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.evaluate import Valuation, truth

if TYPE_CHECKING:
    from ..model import Certainty
    from ..values.value import Value

_INFERRING = frozenset({"call:torch.tensor", "call:torch.as_tensor", "call:torch.asarray"})
_WHOLE = frozenset({"int", "len", "call:math.ceil", "call:math.floor"})
_FLOATS = frozenset({"float", "/"})
_TRUE = frozenset({"==", "!=", "<", "<=", ">", ">=", "not", "is", "is not", "in", "not in", "bool"})
_OF_OPERANDS = frozenset({"+", "-", "*", "neg", "abs", "min", "max"})
_OWN = frozenset({"rank", "group-rank", "data", "random", "time"})
_NAMES = {bool: "bool", int: "int64", float: "float32"}
_WIDE = ("bool", "int64", "float32")


def number_of(value: Value) -> Value | None:
    """The number, or the numbers, that a tensor's dtype is inferred from."""
    if value.tag != "expr" or not value.data[1]:
        return None
    operator, operands = value.data
    if operator in _INFERRING and len(operands) == 1:
        return operands[0] if _is_number(operands[0]) else None
    if operator == "call:torch.full" and len(operands) == 2:
        return operands[1] if _is_number(operands[1]) else None
    return None


def number_dtype(value: Value, at: Valuation) -> str | None:
    """The dtype that is inferred from a number on one rank; None where it is not known, as of ``float(rank)``."""
    if value.tag == "const":
        return _NAMES.get(type(value.data[0]))
    if value.tag == "ite":
        chosen = truth(value.data[0], at)
        if chosen is not None:
            return number_dtype(value.data[1 if chosen else 2], at)
        first, second = (number_dtype(arm, at) for arm in value.data[1:])
        return first if first == second else None
    if value.tag == "tuple":
        return _widest([number_dtype(item, at) for item in value.data])
    if value.tag != "expr":
        return None
    operator, operands = value.data
    if operator in _WHOLE:
        return "int64"
    if operator in _FLOATS:
        return "float32"
    if operator in _TRUE:
        return "bool"
    found = _widest([number_dtype(one, at) for one in operands]) if operator in _OF_OPERANDS else None
    return "int64" if found == "bool" else found


def by_own_data(value: Value) -> Certainty | None:
    """How sure it is that a rank infers another dtype than others, where its own data chooses between two numbers."""
    number = number_of(value)
    if number is None or number.tag != "ite":
        return None
    condition, then, orelse = number.data
    reasons = (*condition.taint, *(condition.trip or ()))
    if not any(t.kind in _OWN and t.certainty != "possible" for t in reasons):
        return None
    at = Valuation(0, 2)
    first, second = number_dtype(then, at), number_dtype(orelse, at)
    return "likely" if first and second and first != second else None


def _is_number(value: Value) -> bool:
    """Whether a value can be taken for numbers: written down, computed, or one of such."""
    if value.tag == "const":
        return type(value.data[0]) in _NAMES
    if value.tag == "tuple":
        return all(_is_number(item) for item in value.data)
    if value.tag == "ite":
        return any(_is_number(arm) for arm in value.data[1:])
    return value.tag == "expr" and (
        value.data[0] in _WHOLE | _TRUE | _FLOATS
        or (value.data[0] in _OF_OPERANDS and any(_is_number(one) for one in value.data[1]))
    )


def _widest(names: list[str | None]) -> str | None:
    """What numbers beside one another are made into."""
    if _WIDE[-1] in names or None not in names:
        return max((name for name in names if name is not None), key=_WIDE.index, default=None)
    return None
