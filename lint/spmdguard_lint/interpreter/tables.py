"""Items of a small table at an index that is not the same on every rank: which rank has which is kept."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..values.evaluate import rank_dependent
from ..values.value import Value, alternatives, choice, constant, expression, is_const, is_split
from .frame import Frame

Reader = Callable[[Frame, Value, Value], Value]
_QUESTIONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in", "not", "and", "or"})
_MOST = 8


def is_question(value: Value) -> bool:
    """Whether a value is True or False."""
    return value.tag == "expr" and value.data[0] in _QUESTIONS


def item_by_choice(
    frame: Frame, receiver: Value, index: Value, fields: dict[str, Value], read: Reader
) -> Value | None:
    """The item at one of a few indices, under the answer to a question (``table[rank == 0]``), or by the rank."""
    if is_split(index) and all(is_const(one) for one in alternatives(index)):
        condition, then, orelse = index.data
        return choice(condition, read(frame, receiver, then), read(frame, receiver, orelse))
    yes, no = ("True", "False") if "True" in fields else ("1", "0")
    if is_question(index) and {*fields} == {yes, no}:
        return choice(index, fields[yes], fields[no])
    if rank_dependent(index) and 1 < len(fields) <= _MOST:
        return _by_rank(index, fields, is_list=frame.machine.objects.info(receiver).kind == "list")
    return None


def _by_rank(index: Value, fields: dict[str, Value], *, is_list: bool) -> Value | None:
    """``{0: a, 1: b}[rank % 2]``: a choice between the items; None where a key is not written down."""
    keys = [_key(name) for name in fields]
    if any(key is None for key in keys):
        return None
    asked = expression("%", (index, constant(len(keys)))) if is_list else index
    *first, result = fields.values()
    for key, item in zip(reversed(keys[:-1]), reversed(first), strict=True):
        result = choice(expression("==", (asked, constant(key))), item, result)
    return result


def _key(name: str) -> int | str | None:
    """The number or the text that a field stands under."""
    try:
        key = ast.literal_eval(name)
    except (ValueError, SyntaxError):
        return None
    return key if isinstance(key, (int, str)) else None
