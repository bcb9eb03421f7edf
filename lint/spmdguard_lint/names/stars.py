"""Which names ``from module import *`` could bind, read from the text so that nothing is parsed for nothing.

Over-approximates: every quoted word of a file that has ``__all__``, every word of a file that has not, and
what the stars of the file offer in turn. Cost: each file's text once.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from .dotted import absolute_module

if TYPE_CHECKING:
    from .layout import ModuleIndex
    from .modules import Module

_WORD = re.compile(rb"[A-Za-z_]\w*")
_QUOTED = re.compile(rb"[\"']([A-Za-z_]\w*)[\"']")
_STAR = re.compile(rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*\(?[ \t]*\*", re.MULTILINE)


class StarNames:
    """Answers per module, remembering every answer."""

    def __init__(self, index: ModuleIndex) -> None:
        self._index = index
        self._offered: dict[Module, frozenset[str]] = {}
        self._own: dict[Module, tuple[frozenset[str], list[Module]]] = {}

    def offered(self, module: Module) -> frozenset[str]:
        """Names that a star import of ``module`` could bind, through all stars below it."""
        known = self._offered.get(module)
        if known is None:
            known = self._offered[module] = self._collect(module)
        return known

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
            content = module.source.content
            pattern = _QUOTED if b"__all__" in content else _WORD
            words = frozenset(
                sys.intern(word.decode("utf-8", "replace")) for word in set(pattern.findall(content))
            )
            below: list[Module] = []
            for dots, written in _STAR.findall(content) if b"*" in content else ():
                target = absolute_module(written.decode(), len(dots), module.name, module.is_package)
                base = self._index.find(target, module)
                if base is not None:
                    below.append(base)
            known = self._own[module] = (words, below)
        return known
