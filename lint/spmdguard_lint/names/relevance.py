"""Which modules the analysis must visit: those with a marker, and those that reach a collective through them.

A file without any marker can still hold a defect when it calls a function of another file that reaches a
collective (``from .checkpoint import save_all``). Such files are found by their imports, read from the text,
and confirmed by resolving the name. In a large project the file must also hold something that can differ
between ranks next to such a call: a value of its own (time, exceptions, files, random numbers) or a rank
helper that it imports. Repeated until nothing new is found, at most ``_MAX_ROUNDS`` times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .imports import TextImport
from .reach import Reach, run_by_calling
from .symbols import ClassSymbol, FunctionSymbol

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .functions import FunctionInfo
    from .modules import Module
    from .project import Project

_MAX_ROUNDS = 6
_LARGE = 400
_QUESTION = re.compile(r"(?:is|has|am|on|should|can|may)_")
_RUN_BY_USE = ("__call__", "forward", "__enter__", "__aenter__", "__iter__", "__next__", "__del__")


def find_relevant(project: Project) -> list[Module]:
    """The modules to visit, in file order."""
    return _Search(project).run()


class _Uses(NamedTuple):
    """Patterns of calls that reach a collective, and of uses of rank helpers."""

    reaching: set[str]
    varying: set[str]


class _Search:
    """One search; keeps what it read of every file, to look at it again in the next round."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._relevant = {m for m in project.all_modules if m.asked.is_marked()}
        self._strict = len(project.all_modules) - len(self._relevant) > _LARGE
        self._reach = Reach(project, only_added=self._strict)
        self._methods: dict[ClassInfo, dict[str, FunctionInfo]] = {}

    def run(self) -> list[Module]:
        waiting = [m for m in self._project.all_modules if m not in self._relevant]
        added = [m for m in self._project.all_modules if m in self._relevant]
        for turn in range(_MAX_ROUNDS if waiting else 0):
            before = set(self._reach.names)
            self._reach.add(added)
            candidates = waiting
            if self._strict and turn:  # only files that import what the last turn added
                fresh = self._reach.names - before
                candidates = [m for m in waiting if any(i.name in fresh for i in m.asked.imports())]
            added = [m for m in candidates if self._is_worth_a_visit(m)]
            if not added:
                break
            self._relevant.update(added)
            waiting = [m for m in waiting if m not in self._relevant]
        return [m for m in self._project.all_modules if m in self._relevant]

    def _is_worth_a_visit(self, module: Module) -> bool:
        uses = _Uses(set(), set())
        for one in module.asked.imports():
            self._look_up(module, one, uses)
        module.asked.forget_words()
        if not self._strict or not uses.reaching:
            return bool(uses.reaching)
        return module.asked.meets("|".join(sorted(uses.reaching)), "|".join(sorted(uses.varying)))

    def _look_up(self, module: Module, one: TextImport, uses: _Uses) -> None:
        """Note the uses of one import that matter."""
        if one.name is not None and one.name in self._reach.names:
            self._note(module, one.target, one.local, uses)
        elif self._project.find_module(one.target, module) is not None:
            for chain in module.asked.chains(one.local):
                if chain.rpartition(".")[2] in self._reach.names:
                    self._note(module, one.target + chain, one.local + chain, uses)

    def _note(self, module: Module, target: str, local: str, uses: _Uses) -> None:
        symbol = self._project.resolve_import(module, target)
        if not isinstance(symbol, (FunctionSymbol, ClassSymbol)):
            return
        for function in run_by_calling(symbol):
            self._note_function(function, rf"\b{re.escape(local)}\b", uses)
        if isinstance(symbol, ClassSymbol):
            for function in self._methods_used(module, symbol.info):
                by_use = function.name in _RUN_BY_USE
                pattern = rf"\b{re.escape(local)}[ \t]*\(" if by_use else rf"\.{function.name}\b"
                self._note_function(function, pattern, uses)

    def _methods_used(self, module: Module, cls: ClassInfo) -> Iterator[FunctionInfo]:
        """Methods of the class, inherited ones included, that the module names or that run implicitly."""
        methods = self._methods.get(cls)
        if methods is None:
            everything = {name: method for one in reversed(cls.mro()) for name, method in one.methods.items()}
            methods = self._methods[cls] = {
                name: method
                for name, method in everything.items()
                if name in _RUN_BY_USE or not name.startswith("__")
            }
        named = module.asked.words_among([name for name in methods if name not in _RUN_BY_USE])
        yield from (methods[name] for name in methods if name in _RUN_BY_USE or name in named)

    def _note_function(self, function: FunctionInfo, pattern: str, uses: _Uses) -> None:
        if self._reach.reaches(function):
            uses.reaching.add(pattern)
        is_method = function.cls is not None
        if is_method and not (function.is_property or _QUESTION.match(function.name)):
            return
        if self._reach.is_rank_helper(function):
            uses.varying.add(pattern)
