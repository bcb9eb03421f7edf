"""What a path is made of: the pieces of its folder, and those of the name in it.

Terminology: a *piece* is a value that a path was put together from, in order; the *folder* ends at the last separator.
A path whose separators are not known is one name.
"""

from __future__ import annotations

from ..values.value import Value

Pieces = list[Value]
_WRITERS = ("FileSystemWriter", "FsspecWriter")
_SAME = (
    "str",
    "call:os.fspath",
    "call:os.path.abspath",
    "call:os.path.expanduser",
    "call:os.path.realpath",
    "call:resolve",
    "call:absolute",
    "call:expanduser",
)


def made_of(value: Value) -> Value:
    """The path behind a storage writer or a ``Path``; other values as they are."""
    if value.tag == "extobj" and isinstance(value.data[2], Value):
        kind = str(value.data[0])
        if kind == "pathlib.Path" or kind.endswith(_WRITERS):
            return made_of(value.data[2])
    return value


def folders(value: Value) -> tuple[Pieces, Pieces]:
    """The pieces of the folder and of the name."""
    value = made_of(value)
    if value.tag == "ite":
        return [value], []
    if value.tag != "expr":
        return _of_constant(value)
    name, operands = value.data
    if name in _SAME:
        return folders(operands[0])
    if name in ("call:os.path.join", "/") or name.endswith(".joinpath"):
        before: Pieces = []
        last: Pieces = []
        for operand in operands:
            before += last
            inner, last = folders(operand)
            before += inner
        return before, last
    if name in ("format", "+"):
        return _of_text(operands)
    return [], [value]


def _of_constant(value: Value) -> tuple[Pieces, Pieces]:
    text = value.data[0] if value.tag == "const" else None
    if isinstance(text, str) and text.endswith("/"):
        return [value], []
    return [], [value]


def _of_text(operands: tuple[Value, ...]) -> tuple[Pieces, Pieces]:
    """A text put together from pieces: a constant slash ends the folder."""
    before: Pieces = []
    last: Pieces = []
    for operand in operands:
        text = operand.data[0] if operand.tag == "const" else None
        if isinstance(text, str) and "/" in text:
            before += last
            last = []
        else:
            inner, name = folders(operand)
            if inner:
                before += last + inner
                last = name
            else:
                last += name
    return before, last
