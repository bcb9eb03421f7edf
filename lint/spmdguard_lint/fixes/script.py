"""One source file as a libcst tree that can be looked up by place and written back.

Terminology: a *block* is the sequence of statements of a module, a function, an arm; a *step* is one statement
of a block. Rows count from 1; columns are those of findings, bytes from 1, as ``ast`` has them.

Invariant: what is not edited is written back byte for byte; a file for which that does not hold, or that this
Python's own parser refuses, is not edited at all. Cost: one parse and one pass for positions, O(n).
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ..model import Location, Site
from ..source.reading import SourceFile
from .texts import raw_text

_N = TypeVar("_N", bound=cst.CSTNode)
Step = cst.SimpleStatementLine | cst.BaseCompoundStatement
Holder = cst.Module | cst.IndentedBlock


class CannotEdit(Exception):
    """A file that no fix may touch; the text says why."""


class Script:
    """A parsed file; raises ``CannotEdit`` where it must not be edited."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.text = raw_text(source)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tree = ast.parse(source.text.removeprefix("\ufeff"))
            wrapper = MetadataWrapper(cst.parse_module(self.text), unsafe_skip_copy=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CannotEdit(f"it is not read by Python's own parser: {error}") from error
        except cst.ParserSyntaxError as error:
            raise CannotEdit(f"it cannot be taken apart: {error.message}") from error
        self.module = wrapper.module
        if self.module.code != self.text:
            raise CannotEdit("it cannot be written back as it is")
        self.positions = wrapper.resolve(PositionProvider)

    @cached_property
    def parents(self) -> dict[cst.CSTNode, cst.CSTNode]:
        """The node around each node."""
        return {child: node for node in walk(self.module) for child in node.children}

    @cached_property
    def _starting(self) -> dict[tuple[int, int], list[cst.CSTNode]]:
        found: dict[tuple[int, int], list[cst.CSTNode]] = {}
        for node in walk(self.module):
            place = self.positions.get(node)
            if place is not None:
                found.setdefault((place.start.line, place.start.column), []).append(node)
        return found

    def _column(self, location: Location) -> int:
        """A finding's column (bytes, from 1) as libcst's (characters, from 0)."""
        line = self.source.lines[location.row - 1].removeprefix("\ufeff")
        if line.isascii():
            return location.column - 1
        return len(line.encode()[: location.column - 1].decode(errors="ignore"))

    def nodes_at(self, site: Site) -> Sequence[cst.CSTNode]:
        """The nodes that begin where a site begins, outermost first."""
        return self._starting.get((site.start.row, self._column(site.start)), ())

    def expression_at(self, site: Site) -> cst.BaseExpression | None:
        """The expression that a site spans exactly."""
        end = (site.end.row, self._column(site.end))
        for node in self.nodes_at(site):
            place = self.positions[node].end
            if isinstance(node, cst.BaseExpression) and (place.line, place.column) == end:
                return node
        return None

    def loop_at(self, site: Site) -> cst.For | cst.While | None:
        """The loop statement that begins where a site begins."""
        return self.at(site, cst.For) or self.at(site, cst.While)

    def at(self, site: Site, kind: type[_N]) -> _N | None:
        """The outermost node of a kind that begins where a site begins."""
        return next((node for node in self.nodes_at(site) if isinstance(node, kind)), None)

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around a node, from the inside out."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def step_of(self, node: cst.CSTNode) -> Step | None:
        """The innermost statement of a block that a node is, or stands in; None in a one-line suite."""
        for outer in (node, *self.around(node)):
            if isinstance(outer, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return outer if self.holder(outer) is not None else None
            if isinstance(outer, cst.SimpleStatementSuite):
                return None
        return None

    def step_at(self, site: Site) -> Step | None:
        """The innermost statement of a block in which a site begins."""
        nodes = self.nodes_at(site)
        return self.step_of(nodes[-1]) if nodes else None

    def holder(self, step: cst.CSTNode) -> Holder | None:
        """The block that a statement stands in."""
        parent = self.parents.get(step)
        return parent if isinstance(parent, (cst.Module, cst.IndentedBlock)) else None

    def siblings(self, step: Step) -> tuple[Sequence[Step], int]:
        """The statements of the block around a statement, and its position among them."""
        holder = self.holder(step)
        assert holder is not None
        body: Sequence[Step] = holder.body  # type: ignore[assignment]  # blocks hold lines and compounds only
        return body, next(index for index, item in enumerate(body) if item is step)

    def owner(self, step: Step) -> cst.CSTNode | None:
        """The compound statement or clause whose block a statement stands in; None in a module."""
        holder = self.holder(step)
        return self.parents.get(holder) if isinstance(holder, cst.IndentedBlock) else None

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self.module.code_for_node(node)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything below it, outermost first, in the order of the text."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(top.children))
