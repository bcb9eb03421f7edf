"""Imports read from the text, for files that are not parsed.

Errs towards too much: an import quoted in a string is taken for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .dotted import absolute_module

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"(\w[\w.]*)(?:[ \t]+as[ \t]+(\w+))?")


@dataclass(frozen=True, slots=True)
class TextImport:
    """``name`` is None for ``import module``; ``local`` is the name that the file uses.

    ``loaded`` is what the import runs at least: all of ``a.b.c`` where ``import a.b.c`` binds ``a`` alone.
    """

    module: str
    name: str | None
    local: str
    loaded: str

    @property
    def target(self) -> str:
        """The absolute dotted name."""
        return self.module if self.name is None else f"{self.module}.{self.name}"


def text_imports(content: bytes, module_name: str, is_package: bool) -> list[TextImport]:
    """Every import of the file, at any depth, with relative ones made absolute."""
    found: list[TextImport] = []
    if b"import" not in content:
        return found
    for dots, written, clause, plain in _IMPORT.findall(content):
        if plain:
            for dotted, alias in _NAME.findall(_COMMENT.sub(b"", plain)):
                name = dotted.decode("utf-8", "replace")
                local = alias.decode("utf-8", "replace") if alias else name.partition(".")[0]
                found.append(TextImport(name if alias else local, None, local, name))
            continue
        base = absolute_module(written.decode("utf-8", "replace"), len(dots), module_name, is_package)
        for dotted, alias in _NAME.findall(_COMMENT.sub(b"", clause)):
            name = dotted.decode("utf-8", "replace")
            local = alias.decode("utf-8", "replace") if alias else name
            found.append(TextImport(base, name, local, f"{base}.{name}"))
    return found
