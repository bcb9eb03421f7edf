"""Items that some ranks find and others do not: ``shares[rank]``, where somebody catches the ``KeyError``.

Without a handler around, an item that is not there is a mistake of the program and not a way that it goes. A handler
shows that its author expects it.
"""

from __future__ import annotations

import ast

from ..source.walking import walk
from ..values.evaluate import Valuation, rank_dependent, truth
from ..values.value import NONE, Value, constant, expression, negate, symbol
from .contents import is_container, structure
from .frame import Frame
from .iterating import raise_where, somebody_catches

FORM = "missing"
_WORLD = 8
_OWN = frozenset({"rank", "data", "random"})
_LOOKUPS = frozenset({"KeyError", "LookupError"})


def raise_where_missing(frame: Frame, receiver: Value, index: Value, node: ast.Subscript) -> None:
    """Branch where the rank decides whether an item of a container that is written out is there."""
    if frame.state is None:
        return
    if not rank_dependent(index):
        _where_drawn(frame, receiver, index, node)
        return
    is_dict = is_container(frame, receiver) and frame.machine.objects.info(receiver).kind == "dict"
    error = "KeyError" if is_dict else "IndexError"
    if not somebody_catches(frame, error):
        return
    missing = _missing(frame, receiver, index, is_dict)
    if missing is None or not _comes_there(frame, missing) or (is_dict and _asked_before(frame, node)):
        return
    raise_where(frame, missing, node, error, FORM)


def _where_drawn(frame: Frame, mapping: Value, key: Value, node: ast.Subscript) -> None:
    """Branch where a key that each rank draws, or has of its own data, may not be in a mapping: a clause names that."""
    why = frozenset(t for t in key.taint if t.kind in _OWN and t.certainty != "possible")
    if not why or mapping.tag == "tuple" or _asked_before(frame, node) or not _is_expected(frame):
        return
    known = frame.machine.objects.info(mapping).kind == "dict" if is_container(frame, mapping) else None
    if known is False or (known and _missing(frame, mapping, key, True) is None):
        return
    raise_where(frame, symbol((FORM, frame.place(node), key.key), why), node, "KeyError", FORM)


def _is_expected(frame: Frame) -> bool:
    """Whether an except clause around, here or in a caller, is about items that are not there."""
    here: Frame | None = frame
    while here is not None:
        if any(_LOOKUPS & set(names) for watch in here.watchers for names in watch.clauses):
            return True
        here = here.caller
    return False


def _comes_there(frame: Frame, missing: Value) -> bool:
    """Whether a rank that finds no item comes to the place where it is read."""
    for rank in range(_WORLD):
        at = Valuation(rank, _WORLD, _WORLD // 2)
        if truth(missing, at) is True and all(truth(c, at) in (None, holds) for c, holds in frame.path):
            return True
    return False


def _asked_before(frame: Frame, node: ast.Subscript) -> bool:
    """Whether the function asks if the key is in the mapping."""
    from .expressions import text_of

    key, mapping = text_of(node.slice), text_of(node.value)
    return frame.function is not None and any(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], (ast.In, ast.NotIn))
        and text_of(test.left) == key
        and text_of(test.comparators[0]) == mapping
        for test in walk(frame.function.node)
    )


def _missing(frame: Frame, receiver: Value, index: Value, is_dict: bool) -> Value | None:
    """The condition under which there is no such item; None where it is not known which there are."""
    from .containers import fields_of
    from .expressions import tuple_value

    if receiver.tag == "tuple":
        return expression(">=", (index, constant(len(receiver.data))))
    if not is_container(frame, receiver) or structure(frame, receiver):
        return None
    fields = fields_of(frame, receiver)
    if not is_dict:
        whole = all(str(position) in fields for position in range(len(fields)))
        return expression(">=", (index, constant(len(fields)))) if whole and fields else None
    keys = [_key(name) for name in fields]
    if not keys or any(key is None for key in keys):
        return None
    return negate(expression("in", (index, tuple_value([key or NONE for key in keys]))))


def _key(name: str) -> Value | None:
    """The key of a mapping that a field is named by."""
    try:
        return constant(ast.literal_eval(name))
    except (ValueError, SyntaxError):
        return None
