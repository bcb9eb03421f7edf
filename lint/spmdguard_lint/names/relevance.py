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

from .chunks import any_chunk_has_both, without_docstrings
from .imports import TextImport, text_imports
from .reach import Reach, run_by_calling
from .symbols import ClassSymbol, FunctionSymbol

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .functions import FunctionInfo
    from .modules import Module
    from .project import Project

_MAX_ROUNDS = 6
_LARGE = 400
_VARYING = re.compile(
    r"\b(?:except\b(?!\s*\(?(?:Import|ModuleNotFound|Attribute)Error\b)[^\n]*:|time\.|random\.|environ\b"
    r"|rand(?:int)?\(|getenv\b|exists\(|is_file\(|is_dir\(|isfile\(|isdir\(|listdir\(|glob\(|signal\."
    r"|perf_counter\(|monotonic\(|isnan\(|isfinite\(|isinf\(|item\(\)|gethostname)"
)
_VARYING_WORDS = (
    *("except", "time.", "random.", "environ", "rand", "getenv", "exists(", "is_file(", "is_dir(", "isfile("),
    *("isdir(", "listdir(", "glob(", "signal.", "perf_counter(", "monotonic(", "isnan(", "isfinite("),
    *("isinf(", "item()", "gethostname"),
)
"""One of these stands wherever the pattern matches; looking for them is cheap."""
_ATTRIBUTE = re.compile(r"\.([A-Za-z_]\w*)")
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
        matches = project.prefilter.matches
        self._relevant = {m for m in project.all_modules if matches(m.source.content)}
        self._strict = len(project.all_modules) - len(self._relevant) > _LARGE
        self._reach = Reach(project, only_added=self._strict)
        self._imports: dict[Module, list[TextImport]] = {}
        self._verdicts: dict[tuple[Module, str, str], bool] = {}
        self._words: tuple[Module | None, frozenset[str]] = (None, frozenset())

    def run(self) -> list[Module]:
        waiting = [m for m in self._project.all_modules if m not in self._relevant]
        added = [m for m in self._project.all_modules if m in self._relevant]
        for turn in range(_MAX_ROUNDS if waiting else 0):
            before = set(self._reach.names)
            self._reach.add(added)
            candidates = waiting
            if self._strict and turn:  # only files that import what the last turn added
                fresh = self._reach.names - before
                candidates = [m for m in waiting if any(i.name in fresh for i in self._imports_of(m))]
            added = [m for m in candidates if self._is_worth_a_visit(m)]
            if not added:
                break
            self._relevant.update(added)
            waiting = [m for m in waiting if m not in self._relevant]
        return [m for m in self._project.all_modules if m in self._relevant]

    def _is_worth_a_visit(self, module: Module) -> bool:
        uses = _Uses(set(), set())
        text = module.source.text
        for one in self._imports_of(module):
            self._look_up(module, text, one, uses)
        if not self._strict or not uses.reaching:
            return bool(uses.reaching)
        key = (module, "|".join(sorted(uses.reaching)), "|".join(sorted(uses.varying)))
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = _meets(text, key[1], key[2])
        return verdict

    def _imports_of(self, module: Module) -> list[TextImport]:
        """The imports of the file that lead, or may lead, into the project."""
        found = self._imports.get(module)
        if found is None:
            everything = text_imports(module.source.content, module.name, module.is_package)
            known = self._project.is_top_level
            found = [one for one in everything if known(one.target.partition(".")[0])]
            self._imports[module] = found
        return found

    def _words_of(self, module: Module, text: str) -> frozenset[str]:
        """Every word after a dot; kept for one file at a time, since the words of all files fill the memory."""
        if self._words[0] is not module:
            self._words = (module, frozenset(_ATTRIBUTE.findall(text)))
        return self._words[1]

    def _look_up(self, module: Module, text: str, one: TextImport, uses: _Uses) -> None:
        """Note the uses of one import that matter."""
        if one.name is not None and one.name in self._reach.names:
            self._note(module, text, one.target, one.local, uses)
        elif self._project.find_module(one.target, module) is not None:
            for chain in _chains(text, one.local):
                if chain.rpartition(".")[2] in self._reach.names:
                    self._note(module, text, one.target + chain, one.local + chain, uses)

    def _note(self, module: Module, text: str, target: str, local: str, uses: _Uses) -> None:
        symbol = self._project.resolve_import(module, target)
        if not isinstance(symbol, (FunctionSymbol, ClassSymbol)):
            return
        for function in run_by_calling(symbol):
            self._note_function(function, rf"\b{re.escape(local)}\b", uses)
        if isinstance(symbol, ClassSymbol):
            for function in _methods_used(self._words_of(module, text), symbol.info):
                by_use = function.name in _RUN_BY_USE
                pattern = rf"\b{re.escape(local)}[ \t]*\(" if by_use else rf"\.{function.name}\b"
                self._note_function(function, pattern, uses)

    def _note_function(self, function: FunctionInfo, pattern: str, uses: _Uses) -> None:
        if self._reach.reaches(function):
            uses.reaching.add(pattern)
        is_method = function.cls is not None
        if is_method and not (function.is_property or _QUESTION.match(function.name)):
            return
        if self._reach.is_rank_helper(function):
            uses.varying.add(pattern)


def _methods_used(words: frozenset[str], cls: ClassInfo) -> Iterator[FunctionInfo]:
    """Methods of the class, inherited ones included, that are among the words or that run implicitly."""
    seen: set[str] = set()
    for one in cls.mro():
        for name, method in one.methods.items():
            if name in seen:
                continue
            if name in _RUN_BY_USE or (not name.startswith("__") and name in words):
                seen.add(name)
                yield method


def _meets(text: str, uses: str, differing_uses: str) -> bool:
    """Whether some function of the text both reaches a collective and holds a value that can differ."""
    reaching, helpers = re.compile(uses), re.compile(differing_uses or "$^")

    def differs(chunk: str) -> bool:
        own = any(word in chunk for word in _VARYING_WORDS) and _VARYING.search(chunk) is not None
        return own or helpers.search(chunk) is not None

    text = without_docstrings(text)
    if reaching.search(text) is None or not differs(text):
        return False
    return any_chunk_has_both(text, lambda chunk: reaching.search(chunk) is not None, differs)


def _chains(text: str, local: str) -> list[str]:
    """The attribute chains that follow ``local`` in the text: ``.comm.barrier``."""
    found: set[str] = set()
    for match in re.finditer(rf"{re.escape(local)}((?:\.\w+)+)", text):
        before = text[match.start() - 1 : match.start()]
        if not (before.isalnum() or before in ("_", ".")) or not before:
            found.add(match[1])
    return sorted(found)
