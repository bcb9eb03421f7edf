"""A file's text with its own newlines, and back to the bytes of the file."""

from __future__ import annotations

import codecs

from ..source.reading import SourceFile


def raw_text(source: SourceFile) -> str:
    """The text with its own newlines, without a byte order mark."""
    start = len(codecs.BOM_UTF8) if source.content.startswith(codecs.BOM_UTF8) else 0
    return source.content[start:].decode(source.encoding)


def to_bytes(source: SourceFile, text: str) -> bytes:
    """``text`` in the encoding of a file, with its byte order mark where it has one."""
    mark = codecs.BOM_UTF8 if source.content.startswith(codecs.BOM_UTF8) else b""
    return mark + text.encode(source.encoding)
