"""Which dotted names the given files can be imported by, and which file an import means.

Terminology: a *root* is a directory that could stand on ``sys.path``. A file's *home root* is found by going
up while ``__init__.py`` exists. Directories above may be namespace packages: the file is registered under
those longer names too, and one of them becomes its primary name when files of the package import it so
(``megatron.core`` without ``megatron/__init__.py``). A lone script's name is its stem; equal names in
different directories live side by side, and an import takes the one nearest to the importing file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..source.reading import SourceFile

if TYPE_CHECKING:
    from .modules import Module

_SOURCE_DIRECTORIES = frozenset({"src", "lib", "python"})
_MAX_LEVELS_ABOVE = 4


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name below a root; ``anywhere``: files that do not lie below the root may use it too."""

    root: str
    dotted: str
    anywhere: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where one file stands: its primary name, and the others that imports may use."""

    primary: Name
    others: tuple[Name, ...]
    is_package: bool
    in_package: bool
    directory: str


def place_files(files: Sequence[SourceFile]) -> list[Place]:
    """The place of each file, in order. Reads the directory tree only to look for ``__init__.py``."""
    paths = [_absolute(source.path) for source in files]
    homes = _Homes(frozenset(paths))
    promotions = _Promotions(files, paths)
    top = _common_directory(paths)
    return [_place(path, homes, promotions, top) for path in paths]


def _place(path: str, homes: _Homes, promotions: _Promotions, top: str) -> Place:
    directory, _, filename = path.rpartition("/")
    stem = filename.removesuffix(".py").removesuffix(".pyi")
    root, package = homes.of(directory)
    is_package = stem == "__init__" and bool(package)
    dotted = package if is_package else f"{package}.{stem}" if package else stem
    primary = Name(root, dotted, anywhere=bool(package))
    others = list(_names_above(root, dotted, top))
    enclosing = homes.enclosing(root)
    if enclosing is not None:
        longer = Name(enclosing[0], f"{enclosing[1]}.{dotted}", anywhere=True)
        others.insert(0, primary if package else longer)
        primary = longer if package else primary
    if package:
        prefix = promotions.prefix_of(primary.root, primary.dotted.partition(".")[0])
        if prefix:
            others.insert(0, primary)
            above = primary.root[: -len(prefix) - 1]
            primary = Name(above, f"{prefix.replace('/', '.')}.{primary.dotted}", anywhere=True)
    return Place(primary, tuple(others), is_package, bool(package), directory)


def _absolute(path: Path) -> str:
    return (path.resolve() if ".." in path.parts else path.absolute()).as_posix()


def _common_directory(paths: list[str]) -> str:
    """The deepest directory that holds all files."""
    low, high = (p.split("/")[:-1] for p in (min(paths, default=""), max(paths, default="")))
    common: list[str] = []
    for one, other in zip(low, high, strict=False):
        if one != other:
            break
        common.append(one)
    return "/".join(common)


def _names_above(root: str, dotted: str, top: str) -> Iterator[Name]:
    """A name for each directory above the home root, up to the directory common to all files."""
    for _ in range(_MAX_LEVELS_ABOVE):
        if len(root) <= len(top):
            return
        root, _, part = root.rpartition("/")
        if not part.isidentifier():
            return
        dotted = f"{part}.{dotted}"
        yield Name(root, dotted, anywhere=False)


class _Homes:
    """Finds home roots; each directory is looked at once."""

    def __init__(self, given: frozenset[str]) -> None:
        self._given = given
        self._known: dict[str, tuple[str, str]] = {}

    def of(self, directory: str) -> tuple[str, str]:
        """``(root, dotted package name)`` of a directory; the name is empty outside packages."""
        found = self._known.get(directory)
        if found is None:
            found = self._known[directory] = self._find(directory)
        return found

    def _find(self, directory: str) -> tuple[str, str]:
        init = f"{directory}/__init__.py"
        parent, _, part = directory.rpartition("/")
        if not part or not (init in self._given or Path(init).is_file()):
            return directory, ""
        root, package = self.of(parent)
        return root, f"{package}.{part}" if package else part

    def enclosing(self, directory: str) -> tuple[str, str] | None:
        """``(root, dotted name)`` of a directory without ``__init__.py`` that lies inside a package."""
        rest: list[str] = []
        for _ in range(_MAX_LEVELS_ABOVE):
            directory, _, part = directory.rpartition("/")
            if not part.isidentifier():
                return None
            rest.insert(0, part)
            root, package = self.of(directory)
            if package:
                return root, ".".join([package, *rest])
        return None


class _Promotions:
    """Decides, once per top-level package, whether its files import it by a longer (namespace) name."""

    def __init__(self, files: Sequence[SourceFile], paths: list[str]) -> None:
        self._pairs = list(zip(paths, files, strict=True))
        self._decided: dict[tuple[str, str], str] = {}

    def prefix_of(self, root: str, package: str) -> str:
        """The directories above the package that its own imports name first, ``""`` for none."""
        key = (root, package)
        if key not in self._decided:
            self._decided[key] = self._decide(root, package)
        return self._decided[key]

    def _decide(self, root: str, package: str) -> str:
        inside = f"{root}/{package}/"
        contents = [source.content for path, source in self._pairs if path.startswith(inside)]
        prefix = ""
        for part in root.split("/")[:0:-1][:2]:
            if not part.isidentifier():
                break
            prefix = f"{part}/{prefix}".rstrip("/")
            dotted = f"{prefix.replace('/', '.')}.{package}"
            ways = (f"from {dotted}".encode(), f"import {dotted}".encode())
            if any(way in content for content in contents for way in ways):
                return prefix
        return ""


def top_level_names(places: Sequence[Place]) -> frozenset[str]:
    """The names with which an absolute import of one of the files may start."""
    found: set[str] = set()
    for place in places:
        found.update(name.dotted.partition(".")[0] for name in (place.primary, *place.others))
        if place.in_package:
            found.add(place.primary.dotted.rpartition(".")[2])
    return frozenset(found)


class ModuleIndex:
    """Finds the module that an absolute dotted name means for a given importer."""

    def __init__(self, modules: Sequence[Module], places: Sequence[Place]) -> None:
        self._entries: dict[str, list[tuple[str, bool, Module]]] = {}
        self._siblings: dict[tuple[str, str], Module] = {}
        self._top_level = top_level_names(places)
        self._directories: dict[Module, str] = {}
        for module, place in zip(modules, places, strict=True):
            for name in (place.primary, *place.others):
                self._entries.setdefault(name.dotted, []).append((name.root, name.anywhere, module))
            self._directories[module] = place.directory
            if place.in_package:
                stem = place.primary.dotted.rpartition(".")[2]
                self._siblings.setdefault((place.directory, stem), module)

    def is_top_level(self, name: str) -> bool:
        """Whether an absolute import that starts with ``name`` may lead into the files at all."""
        return name in self._top_level

    def find(self, name: str, importer: Module) -> Module | None:
        """The module that ``import name`` in ``importer`` means, or None when it is not among the files."""
        entries = self._entries.get(name)
        if entries is None:
            return self._script_sibling(name, importer)
        directory = self._directories[importer]
        best: Module | None = None
        best_score = 0
        for root, anywhere, module in entries:
            score = _nearness(root, anywhere, directory, importer.root)
            if score > best_score:
                best, best_score = module, score
        return best

    def _script_sibling(self, name: str, importer: Module) -> Module | None:
        """``import helper`` in a script that lies inside a package: its own directory heads ``sys.path``."""
        found = self._siblings.get((self._directories[importer], name))
        if found is None or name in sys.stdlib_module_names or not importer.contains(b"__main__"):
            return None
        return found


def _nearness(root: str, anywhere: bool, directory: str, importer_root: str) -> int:
    """0 where an import from ``directory`` cannot mean a file below ``root``, else higher is nearer."""
    if root == importer_root:
        return 1_000_000
    above = directory == root or directory.startswith(root.rstrip("/") + "/")
    if above:
        return 10_000 + len(root)
    if anywhere or root.rpartition("/")[2] in _SOURCE_DIRECTORIES:
        return 1 + len(_common_directory([root + "/", directory + "/"]))
    return 0
