"""Which names ``from module import *`` could bind, read from the text so that nothing is parsed for nothing.

Over-approximates: every quoted word of a file that has ``__all__``, every word of a file that has not, and
what the stars of the file offer in turn. Cost: each file's text once.
"""

from __future__ import annotations

import re
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
        self._offered: dict[Module, set[str]] = {}

    def offered(self, module: Module) -> set[str]:
        """Names that a star import of ``module`` could bind, through all stars below it."""
        known = self._offered.get(module)
        if known is None:
            known = self._offered[module] = self._collect(module)
        return known

    def _collect(self, module: Module) -> set[str]:
        names: set[str] = set()
        seen = {module}
        pending = [module]
        while pending:
            current = pending.pop()
            if current in self._offered:
                names |= self._offered[current]
                continue
            content = current.source.content
            pattern = _QUOTED if b"__all__" in content else _WORD
            names.update(word.decode("utf-8", "replace") for word in set(pattern.findall(content)))
            for dots, written in _STAR.findall(content) if b"*" in content else ():
                target = absolute_module(written.decode(), len(dots), current.name, current.is_package)
                base = self._index.find(target, current)
                if base is not None and base not in seen:
                    seen.add(base)
                    pending.append(base)
        return names
