"""Where a libcst node stands in the text, in the units of ``ast`` (lines from 1, UTF-8 bytes from 0).

Terminology: a node's *span* leaves out its own parentheses, its *outer span* includes them.
"""

from __future__ import annotations

import ast
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

Point = tuple[int, int]
Made = TypeVar("Made", bound=ast.AST)


class Spans:
    """The positions of all nodes of one module; points are (line from 1, character from 0)."""

    def __init__(self, module: cst.Module, text: str) -> None:
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self._ranges: Any = wrapper.resolve(PositionProvider)
        self._lines = text.split("\n")

    def start(self, node: cst.CSTNode) -> Point:
        """First point of the span."""
        span: CodeRange = self._ranges[node]
        return span.start.line, span.start.column

    def end(self, node: cst.CSTNode) -> Point:
        """Point after the last character of the span."""
        span: CodeRange = self._ranges[node]
        return span.end.line, span.end.column

    def outer_start(self, node: Any) -> Point:
        """First point, parentheses included."""
        return self.start(node.lpar[0] if node.lpar else node)

    def outer_end(self, node: Any) -> Point:
        """Point after the last character, parentheses included."""
        return self.end(node.rpar[-1] if node.rpar else node)

    def comma_end(self, element: Any) -> Point:
        """Point after an element and the comma that follows it, if one does."""
        if isinstance(element.comma, cst.Comma):
            line, column = self.end(element.comma.whitespace_before)
            return line, column + 1
        value = element if isinstance(element, (cst.StarredElement, cst.MatchStar)) else element.value
        return self.end(value) if isinstance(value, cst.MatchStar) else self.outer_end(value)

    def text_between(self, start: Point, end: Point) -> str:
        """The source text from ``start`` up to ``end``."""
        if start[0] == end[0]:
            return self._lines[start[0] - 1][start[1] : end[1]]
        inner = self._lines[start[0] : end[0] - 1]
        return "\n".join([self._lines[start[0] - 1][start[1] :], *inner, self._lines[end[0] - 1][: end[1]]])

    def place(self, made: Made, start: Point, end: Point) -> Made:
        """Set ``lineno``, ``col_offset`` and their ``end_`` twins on ``made``, and return it."""
        located: Any = made
        located.lineno, located.col_offset = start[0], self._bytes_before(start)
        located.end_lineno, located.end_col_offset = end[0], self._bytes_before(end)
        return made

    def _bytes_before(self, point: Point) -> int:
        line = self._lines[point[0] - 1]
        return point[1] if line.isascii() else len(line[: point[1]].encode("utf-8", "surrogatepass"))
