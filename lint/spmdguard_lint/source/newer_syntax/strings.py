"""String literals: plain, f-strings, t-strings and implicit concatenation.

Positions inside an f-string are those of Python 3.12 and later: the real ones. (Older interpreters place the
text parts and the replacement fields on the whole literal.)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from .spans import Point

if TYPE_CHECKING:
    from .converter import Converter

_NO_CONVERSION = -1
# A doubled brace, or an escape: the braces of \\N{...} are part of it.
_DOUBLED = re.compile(r"\\N\{[^}]*\}|\\[^{}]|([{}])\1", re.DOTALL)


def _simple(c: Converter, node: cst.SimpleString) -> ast.expr:
    kind = "u" if node.value[0] in "uU" else None
    return c.at(ast.Constant(value=_evaluate(node.value), kind=kind), node)


def _template(c: Converter, node: Any) -> ast.expr:
    return c.at(ast.JoinedStr(values=_merged(_parts(c, node))), node)


def _concatenated(c: Converter, node: cst.ConcatenatedString) -> ast.expr:
    pieces: list[Any] = []
    rest: Any = node
    while isinstance(rest, cst.ConcatenatedString):
        pieces.append(rest.left)
        rest = rest.right
    pieces.append(rest)
    if all(isinstance(piece, cst.SimpleString) for piece in pieces):
        values = [_evaluate(piece.value) for piece in pieces]
        kind = "u" if pieces[0].value[0] in "uU" else None
        return c.at(ast.Constant(value=type(values[0])().join(values), kind=kind), node)
    parts: list[ast.expr] = []
    for piece in pieces:
        if isinstance(piece, cst.SimpleString):
            parts.append(_simple(c, piece))
        else:
            parts.extend(_parts(c, piece))
    return c.at(ast.JoinedStr(values=_merged(parts)), node)


def _evaluate(literal: str) -> Any:
    """The value of a plain literal."""
    value = ast.literal_eval(literal)
    if not isinstance(value, (str, bytes)):
        raise ValueError(f"not a string literal: {literal[:40]!r}")
    return value


def _parts(c: Converter, node: Any) -> Iterator[ast.expr]:
    """Texts and replacement fields of an f-string or t-string, in order."""
    raw = "r" in node.start.lower().rstrip("'\"")
    for part in node.parts:
        if hasattr(part, "expression"):
            yield from _replacement(c, part, raw, node.end)
        else:
            yield c.at(ast.Constant(value=_text(part.value, raw, node.end), kind=None), part)


def _replacement(c: Converter, node: Any, raw: bool, quote: str) -> Iterator[ast.expr]:
    start, end = c.spans.start(node), c.spans.end(node)
    conversion = ord(node.conversion) if node.conversion else _NO_CONVERSION
    if node.equal is not None:
        after_brace, after_equal = (start[0], start[1] + 1), c.spans.end(node.whitespace_after_expression)
        text = ast.Constant(value=c.spans.text_between(after_brace, after_equal), kind=None)
        yield c.spans.place(text, after_brace, after_equal)
        if conversion == _NO_CONVERSION and node.format_spec is None:
            conversion = ord("r")
    made = ast.FormattedValue(value=c.expr(node.expression), conversion=conversion, format_spec=None)
    if node.format_spec is not None:
        made.format_spec = _format_spec(c, node, raw, quote, end)
    yield c.spans.place(made, start, end)


def _format_spec(c: Converter, node: Any, raw: bool, quote: str, end: Point) -> ast.JoinedStr:
    parts: list[ast.expr] = []
    for part in node.format_spec:
        if hasattr(part, "expression"):
            parts.extend(_replacement(c, part, raw, quote))
        else:
            parts.append(c.at(ast.Constant(value=_text(part.value, raw, quote), kind=None), part))
    stop = (end[0], end[1] - 1)
    first = c.spans.start(node.format_spec[0]) if node.format_spec else stop
    made = ast.JoinedStr(values=_merged(parts))
    return c.spans.place(made, (first[0], first[1] - 1), stop)


def _text(source: str, raw: bool, quote: str) -> str:
    """The value of a text part: doubled braces undone, escapes resolved."""
    if raw or "\\" not in source:
        return source.replace("{{", "{").replace("}}", "}")
    single = _DOUBLED.sub(lambda match: match[1] or match[0], source)
    # A lone backslash before a replacement field stands for itself.
    trailing = len(single) - len(single.rstrip("\\"))
    return str(ast.literal_eval(quote + single + ("\\" if trailing % 2 else "") + quote))


def _merged(parts: Iterable[ast.expr]) -> list[ast.expr]:
    """Neighbouring texts joined into one, empty ones dropped, as the grammar does."""
    made: list[ast.expr] = []
    for part in parts:
        last = made[-1] if made else None
        if not isinstance(part, ast.Constant):
            made.append(part)
        elif isinstance(last, ast.Constant):
            last.value = str(last.value) + str(part.value)
            last.end_lineno, last.end_col_offset = part.end_lineno, part.end_col_offset
        else:
            made.append(part)
    return [part for part in made if not (isinstance(part, ast.Constant) and part.value == "")]


HANDLERS: dict[str, Callable[[Any, Any], ast.expr]] = {
    "SimpleString": _simple,
    "FormattedString": _template,
    "TemplatedString": _template,
    "ConcatenatedString": _concatenated,
}
