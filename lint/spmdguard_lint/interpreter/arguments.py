"""The arguments of a call as they are written, with what its stars stand for."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..values.value import NO_TAINT, Taints, Value, alternatives, item_of, retaint, union
from .containers import data_of, unpacked_mapping
from .expressions import evaluate
from .frame import Frame

_CONTENTS = frozenset({"data", "random"})


class Given(NamedTuple):
    """The arguments of a call; whether stars hide some, and why what a mapping hides may differ."""

    args: list[Value]
    kwargs: dict[str, Value]
    spread: bool
    hidden: Taints


def evaluate_arguments(frame: Frame, node: ast.Call, *, split: bool = False) -> Given:
    """Positional and keyword arguments; ``spread`` when stars hide some of them.

    ``split``: one of several sequences of unequal length is left as it is, for ``_with_each``.
    """
    args: list[Value] = []
    spread, hidden = False, NO_TAINT
    for arg in node.args:
        value = evaluate(frame, arg)
        if isinstance(arg, ast.Starred):
            behind = _behind_star(value, split)
            spread = spread or behind is None
            args.extend(behind or ())
        else:
            args.append(value)
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is None:
            known, whole = unpacked_mapping(frame, value)
            kwargs.update(known)
            spread = spread or not whole
            hidden = hidden if whole else union(hidden, value.taint)
        else:
            kwargs[keyword.arg] = value
    return Given(args, kwargs, spread, hidden)


def with_hidden(result: Value, operator: str, hidden: Taints) -> Value:
    """What a call of something unknown gives, which also depends on the mapping behind its ``**``."""
    if result.tag != "expr" or result.data[0] != operator:
        return result
    own = frozenset(t for t in data_of(hidden) if t.kind in _CONTENTS)
    return retaint(result, union(result.taint, own), result.trip)


def _behind_star(value: Value, split: bool) -> list[Value] | None:
    """The arguments that a star stands for; None where they are not known."""
    if value.tag == "tuple":
        return list(value.data)
    choices = alternatives(value, 5) if value.tag == "ite" else []
    if not choices or len(choices) > 4 or any(one.tag != "tuple" for one in choices):
        return None
    if len({len(one.data) for one in choices}) == 1:
        return [item_of(value, position) for position in range(len(choices[0].data))]
    return [Value("stars", (value,), value.taint)] if split and value.taint else None
