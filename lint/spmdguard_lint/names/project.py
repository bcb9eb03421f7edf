"""The index of all linted files: modules by name, symbols by dotted name, what the analysis must visit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ..source.parsing import CannotParse, gc_paused
from ..source.prefilter import Prefilter
from ..source.reading import SourceFile
from .asked import Asked
from .classes import ClassInfo
from .functions import FunctionInfo
from .layout import ModuleIndex, Place, place_files, top_level_names
from .modules import Module
from .parts import connected
from .relevance import find_relevant
from .resolver import Resolver
from .symbols import ClassSymbol, Symbol


class Project:
    """Files of one lint run. Nothing is imported or executed; files are parsed when first needed.

    ``errors`` grows as files are parsed; read it after the analysis.
    """

    def __init__(self, texts: Sequence[Asked], places: Sequence[Place], prefilter: Prefilter) -> None:
        self.prefilter = prefilter
        self.places = places
        self.errors: list[CannotParse] = []
        self.parsed_bytes = 0
        self.all_modules = tuple(
            Module(self, place.primary.dotted, text, place.is_package, place.primary.root)
            for place, text in zip(places, texts, strict=True)
        )
        self.by_filename: Mapping[str, Module] = {m.filename: m for m in self.all_modules}
        by_name: dict[str, Module] = {}
        for module in self.all_modules:
            by_name.setdefault(module.name, module)
        self.modules: Mapping[str, Module] = by_name
        self._index = ModuleIndex(self.all_modules, places)
        self._resolver = Resolver(self._index)

    @staticmethod
    def load(files: Sequence[SourceFile], *, extra_markers: Sequence[str] = ()) -> Project:
        """Index the files. ``extra_markers`` are names that make a file worth visiting, such as the
        user's own ``collectives`` and ``rank-sources`` from the configuration."""
        prefilter = Prefilter(extra_markers)
        places = place_files(files)
        known = top_level_names(places)
        texts = [
            Asked(source, place.primary.dotted, place.is_package, prefilter, known)
            for place, source in zip(places, files, strict=True)
        ]
        return Project(texts, places, prefilter)

    def parts(self) -> Iterator[Project]:
        """The parts that have nothing to do with one another, as projects of their own; in file order."""
        for part in connected(self.all_modules, self.places, self._index):
            if len(part) == len(self.all_modules):
                yield self
                return
            texts = [self.all_modules[number].asked for number in part]
            yield Project(texts, [self.places[number] for number in part], self.prefilter)

    def note_questions(self) -> None:
        """After the analysis: note with each file that was not read what has been asked of many files at once."""
        self._resolver.note_questions()

    def resolve(self, module: Module, dotted: str) -> Symbol:
        """What ``dotted`` (``"dist.get_rank"``) means at module level of ``module``."""
        return self._resolver.resolve(module, dotted)

    def resolve_before(self, module: Module, dotted: str, row: int) -> Symbol:
        """What ``dotted`` means at module level just above ``row``: the ``f`` inside ``f = wrap(f)``."""
        return self._resolver.resolve_before(module, dotted, row)

    def resolve_in_function(self, function: FunctionInfo, dotted: str) -> Symbol:
        """What ``dotted`` means inside ``function``, as far as definitions and imports tell."""
        return self._resolver.resolve_in_function(function, dotted)

    def resolve_import(self, importer: Module, target: str) -> Symbol:
        """What the absolute dotted name of an import in ``importer`` means."""
        return self._resolver.resolve_import(importer, target)

    def find_module(self, dotted: str, importer: Module) -> Module | None:
        """The project module that the absolute name ``dotted`` means for ``importer``."""
        return self._index.find(dotted, importer)

    def is_top_level(self, name: str) -> bool:
        """Whether any file of the project can be imported below the top-level name."""
        return self._index.is_top_level(name)

    def member(self, symbol: Symbol, name: str, importer: Module) -> Symbol | None:
        """What ``symbol.name`` means, or None."""
        return self._resolver.member(symbol, name, importer)

    def resolve_class_base(self, cls: ClassInfo, dotted: str) -> Symbol:
        """What a name in the header of ``cls`` means: classes around it, then functions, then the module."""
        first, _, rest = dotted.partition(".")
        outer = cls.outer
        if outer is not None and not rest and first in outer.nested_classes:
            return ClassSymbol(outer.nested_classes[first])
        if cls.parent is not None and cls.parent.nested_classes.get(first) is not cls:
            return self._resolver.resolve_in_function(cls.parent, dotted)
        return self._resolver.resolve(cls.module, dotted)

    def scope_imports(self, function: FunctionInfo) -> dict[str, str]:
        """Imports in the body of ``function``: local name -> absolute dotted target."""
        return function.scope.imports

    def relevant_modules(self) -> list[Module]:
        """The modules that the analysis must visit, in the order of the given files."""
        return list(self._relevant)

    @cached_property
    def _relevant(self) -> tuple[Module, ...]:
        with gc_paused():
            return tuple(find_relevant(self))

    def subclasses(self, cls: ClassInfo) -> list[ClassInfo]:
        """The direct and indirect subclasses of ``cls`` in the relevant modules, in file order."""
        return [other for other in self._classes_below if cls in other.mro()[1:]]

    @cached_property
    def _classes_below(self) -> tuple[ClassInfo, ...]:
        """All classes with bases: the candidates of ``subclasses``."""
        return tuple(c for m in self._relevant for c in m.all_classes if c.header.bases)
