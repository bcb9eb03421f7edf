"""Bodies of functions that were put aside, and are read again from the text where they are asked for.

A syntax tree takes some thirty times the memory of its text, and most functions of a large project are never
visited: once a run has parsed ``_PLENTY``, a function keeps its header alone. Those keep all that hold functions
or classes of their own, because what is known of these is tied to their nodes, and those that do nothing. Which
ones assign on their receiver is noted, because that is asked of all methods of a class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..source.parsing import CannotParse, parse, parse_rows
from ..source.reading import SourceFile
from ..source.walking import walk
from .scopes import does_nothing
from .selfassign import assigns_on

if TYPE_CHECKING:
    from .functions import FunctionInfo

_PLENTY = 1_000_000
"""Bytes of source that are parsed and kept whole."""
_SHORT = 3
"""Rows of a function that is not worth it."""
_SINGLY = 64
"""Functions of one file that are read one by one; then all of it is read once more."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Bodies:
    """What one file has put aside. Invariant: a node in ``_waiting`` has an empty body, any other its own."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._waiting: dict[tuple[int, int], _Definition] = {}
        self._assigning: set[ast.AST] = set()
        self._singly = 0

    def put_aside(self, functions: Iterable[FunctionInfo], parsed: int) -> None:
        """Drop the bodies of ``functions``, of whose nodes nobody knows yet, if ``parsed`` bytes are plenty."""
        if parsed < _PLENTY:
            return
        for function in functions:
            node = function.header
            if isinstance(node, ast.Lambda) or function.parent is not None:
                continue
            long = (node.end_lineno or node.lineno) - node.lineno >= _SHORT
            nested = function.nested_functions or function.nested_classes
            if not long or nested or all(map(does_nothing, node.body)):
                continue
            first = next(iter((*node.args.posonlyargs, *node.args.args)), None)
            if first is not None and assigns_on(function, first.arg):
                self._assigning.add(node)
            node.body = []
            self._waiting[node.lineno, node.col_offset] = node

    def assigns(self, node: ast.AST) -> bool:
        """Whether a definition whose body is not there assigns on its first parameter."""
        return node in self._assigning

    def is_aside(self, node: ast.AST) -> bool:
        """Whether the body of a definition is not there; it does something."""
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return self._waiting.get(place) is node

    def read(self, node: ast.AST) -> None:
        """Give a definition its body again."""
        if not self.is_aside(node) or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        self._singly += 1
        again = self._alone(node) if self._singly <= _SINGLY else None
        if again is None:
            self.read_all()
        else:
            node.body = again.body
            del self._waiting[node.lineno, node.col_offset]

    def read_between(self, first: int, last: int) -> None:
        """Give all definitions from one row to another their bodies again."""
        inside = [node for (row, _), node in self._waiting.items() if first <= row <= last]
        for node in inside:
            self.read(node)

    def read_all(self) -> None:
        """Give every definition of the file its body again."""
        if not self._waiting:
            return
        for node in walk(parse(self._source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                hollow = self._waiting.pop((node.lineno, node.col_offset), None)
                if hollow is not None:
                    hollow.body = node.body

    def _alone(self, node: _Definition) -> _Definition | None:
        """The definition parsed again from its own rows; None where these do not stand for themselves."""
        try:
            tree = parse_rows(self._source, node.lineno, node.end_lineno or node.lineno)
        except CannotParse:
            return None
        outer = tree.body[0] if len(tree.body) == 1 else None
        block = outer.body if isinstance(outer, ast.If) else tree.body
        again = block[0] if len(block) == 1 else None
        if not isinstance(again, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        return again if _extent(again) == _extent(node) else None


def _extent(node: _Definition) -> tuple[object, ...]:
    return node.name, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
