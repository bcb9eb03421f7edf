"""One file of the project, parsed when it is first asked about."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from ..source.parsing import CannotParse, parse
from ..source.reading import SourceFile
from .asked import Asked
from .bindings import Binding
from .bodies import Bodies
from .collector import Collected, collect
from .functions import FunctionInfo
from .globals import GlobalAssignment, global_assignments
from .lazy import lazy_exports
from .scopes import TextMarkers
from .wrapped import wrapped_names

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .project import Project


class Module:
    """A file with its dotted name; one that cannot be parsed is empty, and an error of the project."""

    def __init__(self, project: Project, name: str, asked: Asked, is_package: bool, root: str) -> None:
        self.project = project
        self.name = name
        self.filename = asked.source.filename
        self.asked = asked
        self.is_package = is_package
        self.root = root
        self.is_read = False
        self._lambdas: dict[ast.Lambda, FunctionInfo] = {}

    def __repr__(self) -> str:
        return f"<module {self.name}>"

    @property
    def source(self) -> SourceFile:
        """The text; from now on the file counts as read, and any change of it as a change."""
        self.is_read = True
        return self.asked.source

    def contains(self, word: bytes) -> bool:
        """Whether a word stands anywhere in the text; remembered."""
        return self.asked.contains(word)

    @cached_property
    def markers(self) -> TextMarkers:
        """Whether the text has walruses or yields at all: most files need no look into expressions."""
        content = self.source.content
        return TextMarkers(walrus=b":=" in content, yields=b"yield" in content)

    def markers_of_rows(self, first: int, last: int | None) -> TextMarkers:
        """The same for some rows."""
        markers = self.markers
        if not (markers.walrus or markers.yields):
            return markers
        text = self.source.rows(first, last)
        return TextMarkers(walrus=":=" in text, yields="yield" in text)

    @property
    def is_parsed(self) -> bool:
        return "_parsed" in self.__dict__

    @cached_property
    def _parsed(self) -> ast.Module:
        try:
            return parse(self.source)
        except CannotParse as error:
            self.project.errors.append(error)
            return ast.Module(body=[], type_ignores=[])

    @cached_property
    def _collected(self) -> Collected:
        found = collect(self, self._parsed)
        self.project.parsed_bytes += len(self.source.content)
        self.bodies.put_aside(found.all_functions, self.project.parsed_bytes)
        return found

    @cached_property
    def bodies(self) -> Bodies:
        """The bodies of functions that are read when they are asked for."""
        return Bodies(self.source)

    @property
    def outline(self) -> ast.Module:
        """The parsed text, parsed now if it was not yet; bodies of functions may be put aside."""
        self._collected  # noqa: B018 - it is parsed there
        return self._parsed

    @property
    def tree(self) -> ast.Module:
        """The parsed text, parsed now if it was not yet, with all bodies."""
        outline = self.outline
        self.bodies.read_all()
        return outline

    @property
    def bindings(self) -> dict[str, list[Binding]]:
        """Module-level names and how each is bound, in source order."""
        return self._collected.bindings

    @property
    def all_functions(self) -> list[FunctionInfo]:
        """Every ``def`` of the file in source order, methods and nested ones included."""
        return self._collected.all_functions

    @property
    def all_classes(self) -> list[ClassInfo]:
        """Every ``class`` of the file in source order."""
        return self._collected.all_classes

    @property
    def star_imports(self) -> list[str]:
        """Absolute names of the modules that ``from ... import *`` takes from."""
        return self._collected.stars

    @property
    def dunder_all(self) -> list[str] | None:
        """A literal ``__all__``, or None."""
        return self._collected.dunder_all

    @cached_property
    def wrapped_names(self) -> frozenset[str]:
        """The last names of what the file wraps for data-parallel training."""
        return wrapped_names(self.source.text)

    @cached_property
    def lazy_exports(self) -> dict[str, str]:
        """Names that a lazy module offers, with the submodule (relative to this package) each comes from."""
        return lazy_exports(self.outline) if b"_import_structure" in self.source.content else {}

    @cached_property
    def global_assignments(self) -> dict[str, list[GlobalAssignment]]:
        """What functions of this file assign to module-level names under ``global``."""
        return global_assignments(self.all_functions) if b"global " in self.source.content else {}

    @cached_property
    def _by_node(self) -> dict[ast.AST, FunctionInfo]:
        return {info.header: info for info in self.all_functions}

    @cached_property
    def _classes_by_node(self) -> dict[ast.AST, ClassInfo]:
        return {info.header: info for info in self.all_classes}

    def function_for(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionInfo:
        """The info of a ``def`` in this file's tree."""
        return self._by_node[node]

    def class_for(self, node: ast.ClassDef) -> ClassInfo:
        """The info of a ``class`` in this file's tree."""
        return self._classes_by_node[node]

    def lambda_for(self, node: ast.Lambda, parent: FunctionInfo | None) -> FunctionInfo:
        """The info of a lambda in this file's tree, made on first use; ``parent`` encloses it."""
        found = self._lambdas.get(node)
        if found is None:
            prefix = f"{parent.qualname}.<locals>." if parent is not None else ""
            found = FunctionInfo(self, node, "<lambda>", f"{prefix}<lambda>", None, parent)
            self._lambdas[node] = found
        return found
