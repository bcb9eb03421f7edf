"""Work that ends by itself: when a process, a request or an episode is done is this rank's own affair.

A list from which what has ended is left out, of items that nothing has made the same everywhere, has a length of the
rank's own. Words for the end are those that programs use for nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..source.unparsing import unparse
from ..source.walking import walk
from ..values.value import NO_TAINT, Taint, Taints, Value
from .contents import is_container
from .frame import Frame
from .selection import is_given

ENDINGS = frozenset(
    {
        "is_alive",
        "done",
        "poll",
        "is_completed",
        "is_done",
        "is_finished",
        "finished",
        "ready",
        "exitcode",
        "running",
    }
)
_ENDED = re.compile(r"(?:^|_)(?:done|dones|finished|terminated|completed|ended)$")
_WHY = "as many items as have not ended on this rank"


def left_over(frame: Frame, items: Value, node: ast.comprehension) -> Taints:
    """Why a comprehension has a length of this rank's own: what has ended is left out."""
    asked = any(_ENDED.search(word) for test in node.ifs for word in _words(test, node))
    if not asked or not _are_given(frame, items):
        return NO_TAINT
    return frozenset({Taint("data", frame.place(node.ifs[0]), _WHY, "likely")})


def _are_given(frame: Frame, items: Value) -> bool:
    """Whether items are computed from parameters, fields or items alone, so that nothing has made them the same."""
    if is_container(frame, items):
        from .containers import fields_of

        return any(map(is_given, fields_of(frame, items).values()))
    if items.tag == "expr" and items.data[0] in ("zip", "enumerate"):
        return any(_are_given(frame, one) for one in items.data[1])
    return is_given(items)


def _words(test: ast.expr, node: ast.comprehension) -> Iterator[str]:
    """The names by which a test asks for an item; where it is a flag beside it, those of what is looped over, too."""
    items = _names(node.target)
    for part in walk(test):
        if isinstance(part, ast.Attribute) and _names(part.value) & items:
            yield part.attr
        elif isinstance(part, ast.Subscript) and _names(part.value) & items:
            yield str(getattr(part.slice, "value", ""))
        elif isinstance(part, ast.Subscript) and _names(part.slice) & items:
            yield unparse(part.value).rpartition(".")[2]
    asked = test.operand if isinstance(test, ast.UnaryOp) else test
    if isinstance(asked, ast.Name) and asked.id in items:
        yield from (asked.id, *_names(node.iter))


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}
