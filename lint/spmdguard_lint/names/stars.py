"""Which names ``from module import *`` could bind, read from the text so that nothing is parsed for nothing.

Over-approximates: every quoted word of a file that has ``__all__``, every word of a file that has not, and
what the stars of the file offer in turn. Cost: each file's text once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .layout import ModuleIndex
    from .modules import Module


class StarNames:
    """Answers per module, remembering every answer."""

    def __init__(self, index: ModuleIndex) -> None:
        self._index = index
        self._offered: dict[Module, frozenset[str]] = {}
        self._own: dict[Module, tuple[frozenset[str], list[Module]]] = {}
        self._asked: set[str] = set()

    def offers(self, module: Module, name: str) -> bool:
        """Whether a star import of ``module`` could bind a name, through all stars below it."""
        self._asked.add(name)
        known = self._offered.get(module)
        if known is None:
            known = self._offered[module] = self._collect(module)
        return name in known

    def note(self) -> None:
        """Note with each file which of the names that were looked for it could bind."""
        names = sorted(self._asked)
        for module in self._own:
            if not module.is_read:
                module.asked.offered(names)

    def _collect(self, module: Module) -> frozenset[str]:
        names: set[str] = set()
        seen = {module}
        pending = [module]
        while pending:
            current = pending.pop()
            if current in self._offered:
                names |= self._offered[current]
                continue
            own, below = self._read(current)
            names |= own
            pending += [base for base in below if base not in seen]
            seen.update(below)
        return frozenset(names)

    def _read(self, module: Module) -> tuple[frozenset[str], list[Module]]:
        """The words of one file, and the files that its stars import."""
        known = self._own.get(module)
        if known is None:
            words = module.asked.words_offered()
            targets = module.asked.stars()
            below = [base for base in (self._index.find(one, module) for one in targets) if base is not None]
            known = self._own[module] = (words, below)
        return known
