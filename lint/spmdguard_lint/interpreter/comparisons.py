"""Comparisons, logic and folding of symbolic values: what their kinds decide without running anything."""

from __future__ import annotations

from ..facts import lookup as facts
from ..values.evaluate import UNKNOWN, Valuation
from ..values.evaluate import evaluate as concrete
from ..values.value import (
    FALSE,
    NO_TAINT,
    NONE,
    TRUE,
    Taints,
    Value,
    alternatives,
    called,
    choice,
    constant,
    expression,
    is_const,
    is_one_of,
    negate,
    operator_of,
    retaint,
    union,
)
from .restored import LOADS

_BY_RANK = frozenset({"rank", "group-rank"})
_RANKS = frozenset({"rank", "local_rank", "node_rank"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "neg", "len", "int", "float"})
_RESHAPED = frozenset(
    {
        "reshape",
        "view",
        "to",
        "clone",
        "detach",
        "contiguous",
        "cat",
        "stack",
        "flatten",
        "squeeze",
        "unsqueeze",
    }
    | {"transpose", "permute", "expand", "float", "half", "bfloat16", "cuda", "cpu"}
)
_ASKING = frozenset(
    {"get", "pop", "getattr", "getenv", "match", "fullmatch", "search", "find", "next", "which"}
)
_PERHAPS = (("param-none",), ("either",))
NEVER_NONE = frozenset({"func", "class", "ext", "extobj", "module", "partial", "bound", "obj", "tuple"})


def existence(taint: Taints) -> Taints:
    """Reasons that also decide whether something is there, or of which type it is, not only its contents."""
    return frozenset(t for t in taint if t.kind not in ("data", "synced", "random", "time", "order"))


def _launch_test(operator: str, left: Value, right: Value) -> Value | None:
    """``rank != -1``, ``rank >= 0``, ``rank is None``: there is a launcher, for without one nothing can part."""
    if left.tag == "expr" and left.data[0] == "str" and right.key == NONE.key:
        left = left.data[1][0]  # the variable of a launcher, as text
    if left.tag not in _RANKS or not is_const(right):
        return None
    number = right.data[0]
    if number is None and operator in ("is", "is not", "==", "!="):
        return TRUE if operator in ("is not", "!=") else FALSE
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    if (number < 0 and operator in ("!=", ">")) or (number == 0 and operator == ">="):
        return TRUE
    if (number < 0 and operator in ("==", "<=")) or (number == 0 and operator == "<"):
        return FALSE
    return None


def _world_test(operator: str, left: Value, right: Value) -> Value | None:
    """``world_size > 1`` holds: with a single rank nothing can part."""
    if left.tag != "world" or not is_const(right) or not isinstance(right.data[0], int):
        return None
    number = int(right.data[0])
    if (operator, number) in ((">", 1), ("!=", 1), (">=", 2), (">", 0), ("!=", 0), (">=", 1)):
        return TRUE
    if (operator, number) in (("==", 1), ("<", 2), ("<=", 1), ("==", 0), ("<", 1)):
        return FALSE
    return None


def is_there(value: Value) -> bool:
    """Whether a value can only be something else than None, by its kind or by what has made it."""
    return value.tag in NEVER_NONE or is_number(value) or called(operator_of(value)) in _RESHAPED


def is_number(value: Value) -> bool:
    """Whether a value can only be a number: computed, or an index that a ``range`` or ``enumerate`` gave."""
    counted = value.tag == "sym" and isinstance(value.data[0], tuple) and value.data[0][:1] == ("index",)
    return counted or operator_of(value) in _ARITHMETIC


def hashes_alike(value: Value) -> bool:
    """Whether a value is made of numbers alone: what holds a text has another hash in each process."""
    if value.tag == "tuple":
        return all(map(hashes_alike, value.data))
    if is_const(value):
        return isinstance(value.data[0], (int, float))
    return is_number(value) or value.tag in ("rank", "local_rank", "node_rank", "group_rank", "world")


def _asks_for_structure(operator: str, left: Value, right: Value) -> bool:
    """Whether a comparison asks what there is (a key, a type, anything at all), not which numbers."""
    if right.key == NONE.key or left.key == NONE.key:
        return True
    if operator in ("in", "not in"):
        return all(is_const(one) and isinstance(one.data[0], str) for one in alternatives(left))
    return right.tag == "obj" and operator in ("==", "!=")


def compare(operator: str, left: Value, right: Value) -> Value:
    """One comparison, decided where the operands' kinds decide it."""
    if operator in ("==", "!=", "in", "not in"):
        if is_const(right) or right.tag in ("tuple", "world", "expr"):
            left = strengthen(left) if left.tag in ("rank", "local_rank") else left
        if is_const(left):
            right = strengthen(right) if right.tag in ("rank", "local_rank") else right
        if is_const(left) and _without_digits(left) and _is_shown_device(right):
            right = retaint(right, frozenset(t for t in right.taint if t.kind not in _BY_RANK), right.trip)
    if operator in ("is", "is not") and right.key == NONE.key:
        if left.tag == "ite":
            return _none_test_of_choice(operator, left)
        unset = left.tag == "ext" and facts.may_be_none(left.data[0])
        if (is_there(left) and not unset) or (is_const(left) and left.data[0] is not None):
            return FALSE if operator == "is" else TRUE
        if is_one_of(left):
            return retaint(expression(operator, (left, right)), NO_TAINT)
    launched = _launch_test(operator, left, right) or _world_test(operator, left, right)
    if launched is not None:
        return launched
    result = _of_choices(operator, left, right) or fold(expression(operator, (left, right)))
    if result.taint and _asks_for_structure(operator, left, right):
        computed = right.key == NONE.key and operator_of(left) != ""
        kept = existence(result.taint)
        return retaint(result, frozenset(t for t in kept if t.kind not in _BY_RANK) if computed else kept)
    return result


def _without_digits(value: Value) -> bool:
    """Whether a value is a text in which no number can stand."""
    return isinstance(value.data[0], str) and not any(letter.isdigit() for letter in value.data[0])


def _is_shown_device(value: Value) -> bool:
    """``str(torch.device("cuda", rank))``: ranks differ in the digits alone."""
    return operator_of(value) == "str" and _is_device(value.data[1][0])


def _is_device(value: Value) -> bool:
    if value.tag == "ite":
        chosen = value.data[0].taint
        return all(t.kind not in _BY_RANK for t in chosen) and all(map(_is_device, value.data[1:]))
    return operator_of(value) == "call:torch.device" or value.tag in _RANKS or not value.taint


def _of_choices(operator: str, left: Value, right: Value) -> Value | None:
    """One of a few constants, compared with a constant: the condition under which it is chosen.

    ``role == "first"`` is ``rank == 0``, which stays readable where the choice, written out, is too large to keep.
    """
    if operator not in ("==", "!=") or left.tag != "ite" or not is_const(right):
        return None
    found = _picked(operator, left, right)
    return None if found is None or is_const(found) else retaint(found, union(found.taint, left.taint), None)


def _picked(operator: str, value: Value, right: Value) -> Value | None:
    if is_const(value):
        found = fold(expression(operator, (value, right)))
        return found if is_const(found) else None
    if value.tag != "ite":
        return None
    condition: Value = value.data[0]
    first, second = (_picked(operator, part, right) for part in value.data[1:])
    if first is None or second is None:
        return None
    if first.key == second.key:
        return first
    if is_const(first):
        one = condition if first.data[0] else negate(condition)
        return logic("or" if first.data[0] else "and", [one, second]) if not is_const(second) else one
    if is_const(second):
        return logic("or", [negate(condition), first]) if second.data[0] else logic("and", [condition, first])
    return choice(condition, first, second)


def _none_test_of_choice(operator: str, value: Value) -> Value:
    condition: Value = value.data[0]
    then, orelse = value.data[1:]
    first, second = compare(operator, then, NONE), compare(operator, orelse, NONE)
    if first.key == TRUE.key and second.key == FALSE.key:
        return condition
    if first.key == FALSE.key and second.key == TRUE.key:
        return negate(condition)
    found = choice(condition, first, second)
    if any(_may_be_none(one) for one in (then, orelse)):
        return found
    # which of two things it is does not tell whether it is there
    return retaint(found, union(first.taint, second.taint), found.trip)


def _may_be_none(value: Value) -> bool:
    """Whether a value is None, or made by what gives None where there is nothing to give."""
    if value.tag == "ite":
        return any(map(_may_be_none, value.data[1:]))
    if value.tag == "sym":
        return not is_one_of(value) and isinstance(value.data[0], tuple) and value.data[0][:1] in _PERHAPS
    return value.key == NONE.key or operator_of(value).rpartition(".")[2].removeprefix("call:") in _ASKING


def fold(value: Value) -> Value:
    """Constant-fold an expression of constants (numbers and strings of modest size, tuples of them)."""
    if value.tag != "expr" or value.taint or not all(map(_is_literal, value.data[1])):
        return value
    result = concrete(value, Valuation(0, 2))
    if result is UNKNOWN or not isinstance(result, (bool, int, float, str, type(None))):
        return value
    return constant(result)


def _is_literal(value: Value) -> bool:
    return is_const(value) or (value.tag == "tuple" and all(map(is_const, value.data)))


def _asks_rank(value: Value) -> bool:
    """Whether the rank stands in a value otherwise than in the name of a file that was read."""
    stack = [value]
    while stack:
        part = stack.pop()
        if part.tag in _RANKS:
            return True
        if part.tag == "expr" and part.data[0] not in LOADS:
            stack.extend(part.data[1])
        elif part.tag in ("ite", "tuple", "each"):
            stack.extend(part.data)
    return False


def strengthen(value: Value) -> Value:
    """A bare name ``rank`` used the way a process rank is used: take it for one."""
    return as_rank(value) if _asks_rank(value) else value


def as_rank(value: Value) -> Value:
    """A bare name ``rank`` where only a process rank is meant."""
    if not any(t.kind == "rank" and t.certainty == "possible" for t in value.taint):
        return value
    taint = frozenset(
        t._replace(certainty="likely") if t.kind == "rank" and t.certainty == "possible" else t
        for t in value.taint
    )
    return retaint(value, taint, value.trip)


def logic(operator: str, values: list[Value]) -> Value:
    """``and`` / ``or`` of values, dropping constants that decide nothing."""
    kept: list[Value] = []
    for position, value in enumerate(values):
        if is_const(value):
            if bool(value.data[0]) is (operator == "or"):
                kept.append(value)
                break
            if position < len(values) - 1:
                continue
        kept.append(value)
    if len(kept) == 1:
        return kept[0]
    result = expression(operator, kept)
    if operator == "or" and any(v.tag in NEVER_NONE for v in kept):
        return choice(kept[0], kept[0], kept[1]) if len(kept) == 2 else result
    return result


def simplify_condition(value: Value) -> Value:
    """A choice between constants is its condition; a part that decides an ``and`` or ``or`` decides."""
    if value.tag == "expr" and value.data[0] in ("and", "or"):
        decisive = value.data[0] == "or"
        for part in value.data[1]:
            if is_const(part) and bool(part.data[0]) is decisive:
                return TRUE if decisive else FALSE
    if value.tag == "ite":
        condition, then, orelse = value.data
        if is_const(then) and is_const(orelse):
            holds, fails = bool(then.data[0]), bool(orelse.data[0])
            if holds == fails:
                return TRUE if holds else FALSE
            result = condition if holds else negate(condition)
            return retaint(result, union(result.taint, value.taint), None)
    if value.tag in NEVER_NONE - {"obj", "tuple", "extobj"}:
        return TRUE
    return value
