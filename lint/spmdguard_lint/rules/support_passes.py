"""Passes of a model in a loop: which sample it gets makes no difference to what it communicates, which model does.

A model is the same in each round where a plain name stands for it that the loop does not assign. A backward pass is
one of that model where the loop makes no other passes, and does not run over the losses themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..names.dotted import dotted_name
from ..source.walking import walk
from ..traces.nodes import Loop, Op
from ..values.value import Place, is_at

if TYPE_CHECKING:
    from ..analysis import Analysis


def without_passes(analysis: Analysis, loop: Loop, ops: Sequence[Op]) -> list[Op]:
    """The operations of a loop for which it matters which item comes first."""
    forward = [op for op in ops if op.implicit and op.name != "backward"]
    if not forward:
        return list(ops)
    assigned = _assigned(analysis, loop.place)
    if assigned is None or not all(_is_one_model(loop.place, op, assigned) for op in forward):
        return list(ops)
    return [
        op
        for op in ops
        if op not in forward and (op.name != "backward" or _first_name(op.text) in assigned[0])
    ]


def _assigned(analysis: Analysis, place: Place) -> tuple[set[str], set[str]] | None:
    """The names that the loop at a place takes its items by, and all that it assigns; None where it is no statement."""
    module = analysis.project.by_filename.get(place.filename)
    for node in walk(module.tree) if module is not None else ():
        if isinstance(node, ast.For) and is_at(node, place):
            return _stored(node.target), _stored(node)
    return None


def _stored(node: ast.AST) -> set[str]:
    return {
        dotted_name(part)
        for part in walk(node)
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Store)
    }


def _is_one_model(place: Place, op: Op, assigned: tuple[set[str], set[str]]) -> bool:
    """Whether the loop itself calls what a plain name stands for throughout."""
    here = op.place.filename == place.filename and place.row <= op.place.row <= place.end_row
    called = op.text.partition("(")[0]
    if not here or re.fullmatch(r"\w+(?:\.\w+)*", called) is None:
        return False
    parts = called.split(".")
    return not any(".".join(parts[:end]) in assigned[1] for end in range(1, len(parts) + 1))


def _first_name(text: str) -> str:
    return re.split(r"\W", text, maxsplit=1)[0]
