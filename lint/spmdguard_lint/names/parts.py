"""Parts of a project that have nothing to do with one another, so that each is analysed for itself.

Terminology: a *part* is a set of files that are connected: by an import of one by another, by the package that
they belong to, or by the folder in which they stand. A repository of many examples has many parts, a package has one.
What is found in a part depends on the part alone: it is the same whatever else is linted in the same run, and needs
no second analysis when only files of other parts have changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from .layout import ModuleIndex, Place

if TYPE_CHECKING:
    from .modules import Module


def connected(modules: Sequence[Module], places: Sequence[Place], index: ModuleIndex) -> list[list[int]]:
    """The positions of the files of each part, in the order of the files."""
    groups = _Groups(len(modules))
    first: dict[Hashable, int] = {}
    position = {module: number for number, module in enumerate(modules)}
    for number, (module, place) in enumerate(zip(modules, places, strict=True)):
        groups.join(number, first.setdefault(place.directory, number))
        if place.in_package:
            package = (place.primary.root, place.primary.dotted.partition(".")[0])
            groups.join(number, first.setdefault(package, number))
        for imported in _imported(module, index):
            groups.join(number, position[imported])
    members: dict[int, list[int]] = {}
    for number in range(len(modules)):
        members.setdefault(groups.of(number), []).append(number)
    return list(members.values())


def _imported(module: Module, index: ModuleIndex) -> Iterator[Module]:
    """The files that the imports of another lead to, with the packages on the way."""
    known: set[str] = set()
    for one in module.asked.imports():
        dotted = one.loaded
        while dotted and dotted not in known:
            known.add(dotted)
            found = index.find(dotted, module)
            if found is not None:
                yield found
            dotted = dotted.rpartition(".")[0]


class _Groups:
    """Numbers joined into groups, each known by the least of them."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def of(self, number: int) -> int:
        while self._above[number] != number:
            self._above[number] = self._above[self._above[number]]
            number = self._above[number]
        return number

    def join(self, one: int, other: int) -> None:
        least, most = sorted((self.of(one), self.of(other)))
        self._above[most] = least
