"""Evaluate symbolic conditions for a concrete rank: the two-rank reading.

A *valuation* fixes the rank, the world size and the truth of some opaque conditions (*atoms*).
``evaluate`` gives a Python value, or ``UNKNOWN`` where a part is not fixed; it never guesses.
``truth`` gives True, False or None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .value import Member, Value, alternatives, expression


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()


@dataclass(frozen=True)
class Valuation:
    """What one rank knows: its rank, the world size, and the truth or number of opaque values by their keys."""

    rank: int
    world: int
    local: int = 2
    atoms: Mapping[Hashable, Any] = field(default_factory=dict)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (one == other and isinstance(one, (bool, type(None), Member)))


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "/": operator.truediv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": _is_same,
    "is not": lambda a, b: not _is_same(a, b),
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


def _repeat(items: Any, count: Any) -> Any:
    return list(items) * count if 0 <= len(items) * count <= MAX_RANK else UNKNOWN


_BINARY["repeat"] = _repeat
_UNARY: dict[str, Callable[[Any], Any]] = {
    "not": operator.not_,
    "neg": operator.neg,
    "int": int,
    "str": str,
    "bool": bool,
    "len": len,
    "list": list,
    "tuple": tuple,
    "set": set,
    "sorted": sorted,
    "abs": abs,
    "call:math.ceil": math.ceil,
    "call:math.floor": math.floor,
    "float": float,
    "min": min,
    "max": max,
    "sum": sum,
}
_VARIADIC: dict[str, Callable[..., Any]] = {"range": range, "min": min, "max": max}
_NUMERIC = frozenset(
    {
        *_BINARY.keys() - {"repeat"},
        "not",
        "neg",
        "int",
        "abs",
        "float",
        "min",
        "max",
        "call:math.ceil",
        "call:math.floor",
    }
)
_SAFE = (bool, int, float, str, type(None), tuple, list, range, set, frozenset)


def is_computed(operator_name: str) -> bool:
    """Whether an operator gives a number or a truth that follows from its operands' numbers."""
    return operator_name in _NUMERIC


def evaluate(value: Value, at: Valuation) -> Any:
    """The concrete value at a valuation, or UNKNOWN."""
    if value.key in at.atoms:
        return at.atoms[value.key]
    tag = value.tag
    if tag == "const":
        return value.data[0]
    if tag == "rank":
        return at.rank
    if tag == "world":
        return at.world
    if tag == "local_rank":
        return at.rank % at.local
    if tag == "node_rank":
        return at.rank // at.local
    if tag == "ite":
        condition = truth(value.data[0], at)
        if condition is not None:
            return evaluate(value.data[1] if condition else value.data[2], at)
        then, orelse = evaluate(value.data[1], at), evaluate(value.data[2], at)
        same = isinstance(then, _SAFE) and type(then) is type(orelse) and then == orelse
        return then if same else UNKNOWN
    if tag == "tuple":
        items = [evaluate(item, at) for item in value.data]
        return UNKNOWN if any(item is UNKNOWN for item in items) else tuple(items)
    if tag == "expr":
        return _evaluate_expression(value, at)
    return _evaluate_each(value, at) if tag == "each" else UNKNOWN


def _evaluate_each(value: Value, at: Valuation) -> Any:
    """The items of a comprehension: what it runs over, the item, the condition, what it makes of the item."""
    source, item, condition, made = value.data
    items = evaluate(source, at)
    if not isinstance(items, (range, tuple, list)) or len(items) > MAX_RANK:
        return UNKNOWN
    found = []
    for one in items:
        inside = Valuation(at.rank, at.world, at.local, {**at.atoms, item.key: one})
        keeps = truth(condition, inside)
        result = evaluate(made, inside) if keeps else None
        if keeps is None or result is UNKNOWN:
            return UNKNOWN
        if keeps:
            found.append(result)
    return found


def _evaluate_expression(value: Value, at: Valuation) -> Any:
    name, operands = value.data
    if name in ("and", "or"):
        return _evaluate_logic(name, operands, at)
    items = [evaluate(item, at) for item in operands]
    if any(item is UNKNOWN or not isinstance(item, _SAFE) for item in items):
        return UNKNOWN
    try:
        if len(items) == 2 and name in _BINARY:
            if name == "*" and not all(isinstance(i, (int, float)) for i in items):
                return UNKNOWN
            result = _BINARY[name](*items)
        elif len(items) == 1 and name in _UNARY:
            result = _UNARY[name](items[0])
        elif name in _VARIADIC:
            result = _VARIADIC[name](*items)
        elif name == "getitem":
            result = items[0][items[1]]
        else:
            return UNKNOWN
    except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError):
        return UNKNOWN
    return result if isinstance(result, _SAFE) else UNKNOWN


def _evaluate_logic(name: str, operands: tuple[Value, ...], at: Valuation) -> Any:
    unknown = False
    for item in operands:
        known = truth(item, at)
        if known is None:
            unknown = True
        elif known is (name == "or"):
            return known
    return UNKNOWN if unknown else name == "and"


def truth(value: Value, at: Valuation) -> bool | None:
    """Whether the condition holds at a valuation; None when unknown."""
    result = evaluate(value, at)
    if result is UNKNOWN:
        return None
    try:
        return bool(result)
    except (TypeError, ValueError):
        return None


def rank_dependent(value: Value) -> bool:
    """Whether the rank itself occurs in the value's expression (so that a valuation can decide it)."""
    return bool(value.taint) and _holds(value, RANKS)


def holds_rank(value: Value) -> bool:
    """Whether the rank occurs in the value's expression, even where the value is taken to be the same everywhere."""
    return _holds(value, RANKS)


def world_dependent(value: Value) -> bool:
    """Whether the world size occurs in the value's expression."""
    return _holds(value, _WORLD_TAGS)


RANKS = frozenset({"rank", "local_rank", "node_rank"})
_WORLD_TAGS = frozenset({"world"})


def _holds(value: Value, tags: frozenset[str]) -> bool:
    stack = [value]
    while stack:
        current = stack.pop()
        if current.tag in tags:
            return True
        if current.tag == "expr":
            stack.extend(current.data[1])
        elif current.tag in ("ite", "tuple", "each"):
            stack.extend(current.data)
    return False


def rank_constants(value: Value) -> set[int]:
    """Whole numbers in a condition: ranks and world sizes that it may tell apart."""
    found: set[int] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current.tag == "const":
            number = current.data[0]
            if isinstance(number, int) and not isinstance(number, bool) and 1 < number <= MAX_RANK:
                found.add(number)
        elif current.tag == "expr":
            stack.extend(current.data[1])
        elif current.tag in ("ite", "tuple", "each"):
            stack.extend(current.data)
    return found


MAX_RANK = 4096
_COMPARING = frozenset({"==", "!=", "<", "<=", ">", ">=", "is", "is not"})
_MAX_CHOICES = 4


def residual(value: Value, at: Valuation) -> Hashable:
    """The key of what is left of a condition when the valuation is known: equal keys decide alike."""
    known = truth(value, at)
    if known is not None:
        return ("known", known)
    if value.tag == "expr":
        name, operands = value.data
        if name == "not":
            return ("not", residual(operands[0], at))
        if name in ("and", "or"):
            parts = [residual(item, at) for item in operands]
            left = [part for part in parts if part not in (("known", True), ("known", False))]
            return left[0] if len(left) == 1 else (name, *left)
        place = next((i for i, item in enumerate(operands) if item.tag == "ite"), None)
        if (
            name in _COMPARING
            and place is not None
            and len(alternatives(value.data[1][place])) <= _MAX_CHOICES
        ):
            return _of_each_choice(name, operands, place, at)
        return ("expr", name, *(_operand_key(item, at) for item in operands))
    if value.tag == "ite":
        condition = truth(value.data[0], at)
        if condition is not None:
            return residual(value.data[1] if condition else value.data[2], at)
        first, second = value.data[1:]
        return ("ite", residual(value.data[0], at), _operand_key(first, at), _operand_key(second, at))
    if value.tag == "tuple":
        return ("tuple", *(_operand_key(item, at) for item in value.data))
    return value.key


def _of_each_choice(name: str, operands: tuple[Value, ...], place: int, at: Valuation) -> Hashable:
    """A comparison with a value of two: with each of the two. ``RANK >= 0`` of ``-1`` or the rank decides alike."""
    condition, first, second = operands[place].data
    one, other = (
        residual(expression(name, (*operands[:place], item, *operands[place + 1 :])), at)
        for item in (first, second)
    )
    known = truth(condition, at)
    if known is not None:
        return one if known else other
    return one if one == other else ("ite", residual(condition, at), one, other)


def _operand_key(value: Value, at: Valuation) -> Hashable:
    result = evaluate(value, at)
    if result is UNKNOWN:
        return residual(value, at)
    return ("value", repr(result))


_MANY_WORLDS = ((2, 2), (3, 3), (4, 2), (64, 8), (4096, 8))


def settled(condition: Value) -> bool | None:
    """The truth of a condition on the rank that is the same for every rank of every world, else None.

    ``RANK != -1`` is true wherever ranks exist. Of large worlds the first ranks and the last are asked.
    """
    if not rank_dependent(condition):
        return None
    verdict: bool | None = None
    for world, local in _MANY_WORLDS:
        for rank in {*range(min(world, 10)), world - 1}:
            known = truth(condition, Valuation(rank, world, local))
            if known is None or (verdict is not None and known is not verdict):
                return None
            verdict = known
    return verdict
