"""A cheap scan that refuses sources whose nesting would exhaust or stall libcst's native parser.

Measured on libcst 1.9: 3,000 nested parentheses or 10,000 chained operators overflow an 8 MB stack and end
the process; 1,000 nested calls take 10 s; patterns nested 20 deep after ``case`` take seconds each level
doubling. CPython itself refuses 200 nested brackets and 100 levels of indentation (libcst checks the latter).

Terminology: a *context* is the inside of one bracket pair, of one f-string, or of one statement. Its *chain*
is the number of tokens since its last comma: an upper bound for the depth of the expression read there. A
bracket counts four times, because a chain of 2,000 subscripts takes the parser 30 s.
The *depth* is the sum of the chains of all open contexts. One pass, O(length).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BRACKETS = 200
MAX_PATTERN_BRACKETS = 8
MAX_CHAIN = 2_000
BRACKET_WEIGHT = 4
MAX_ELIF = 1_000

_CODE = re.compile(
    r"""
      (?P<skip>\#[^\n]*|\\\n|[ \t\f]+)
    | (?P<blank>\n[ \t\f]*(?=[\n\#]))
    | \n(?P<indent>[ \t\f]*)(?P<first>elif\b|case\b)?
    | (?P<template>(?i:[ft]r?|r[ft])(?P<quote>'''|\"\"\"|'|"))
    | (?P<string>(?i:u|b|br|rb|r)?(?:
          '''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''
        | \"\"\"[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*\"\"\"
        | '[^'\\\n]*(?:\\.[^'\\\n]*)*'
        | "[^"\\\n]*(?:\\.[^"\\\n]*)*"))
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<comma>[,;])
    | (?P<colon>:)
    | (?P<token>\w+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE_PARTS = {
    quote: re.compile(
        rf"(?P<text>\\[^{{}}]|\{{\{{|\}}\}})|(?P<open>\{{)|(?P<close>\}})|(?P<end>{stop})", re.DOTALL
    )
    for quote, stop in (("'''", "'''"), ('"""', '"""'), ("'", "['\n]"), ('"', '["\n]'))
}


@dataclass(slots=True)
class _Context:
    kind: str  # "statement", "bracket", "replacement" (braces of an f-string), "template" or "format"
    quote: str = ""
    chain: int = 0


def reject_deep_nesting(text: str, filename: str) -> None:
    """Raise a ``SyntaxError`` if ``text`` nests deeper than the parser can bear."""
    scan = _Scan()
    source = "\n" + text
    position, size = 0, len(source)
    while position < size:
        position = scan.step(source, position)
        problem = scan.problem()
        if problem:
            line = source.count("\n", 0, position)
            raise SyntaxError(problem, (filename, max(line, 1), 1, None))


class _Scan:
    """The open contexts at one point of the text."""

    def __init__(self) -> None:
        self._contexts = [_Context("statement")]
        self._depth = 0
        self._elifs: dict[int, int] = {}
        self._in_pattern = False

    def problem(self) -> str | None:
        """What is too deep at this point, if anything."""
        brackets = len(self._contexts) - 1
        if brackets > MAX_BRACKETS:
            return "too many nested brackets"
        if self._in_pattern and brackets > MAX_PATTERN_BRACKETS:
            return "pattern too deeply nested"
        if self._depth > MAX_CHAIN:
            return "expression too deeply nested"
        if self._elifs and sum(self._elifs.values()) > MAX_ELIF:
            return "too many elif clauses"
        return None

    def step(self, source: str, position: int) -> int:
        """Read one token at ``position``; returns where the next one begins."""
        top = self._contexts[-1]
        if top.kind in ("template", "format"):
            return self._step_template(source, position, top)
        match = _CODE.match(source, position)
        assert match is not None, "the pattern's last alternative matches any character"
        group = match.lastgroup
        if group in ("indent", "first"):
            self._newline(len(match["indent"]), match["first"])
        elif group == "template":
            self._push("template", match["quote"])
        elif group == "open":
            self._push("bracket")
        elif group == "close":
            self._close(match["close"])
        elif group == "comma":
            self._restart(top)
        elif group == "colon" and top.kind == "replacement":
            self._push("format", top.quote)
        elif group not in ("skip", "blank"):
            self._grow(top)
        return match.end()

    def _step_template(self, source: str, position: int, top: _Context) -> int:
        match = _TEMPLATE_PARTS[top.quote].search(source, position)
        if match is None:
            return len(source)
        if match.lastgroup == "open":
            self._push("replacement", top.quote)
        elif match.lastgroup == "end":
            while self._contexts[-1].kind in ("format", "replacement"):
                self._pop()
            if self._contexts[-1].kind == "template":
                self._pop()
        elif match.lastgroup == "close" and top.kind == "format":
            self._pop()
            self._pop()
        return match.end()

    def _push(self, kind: str, quote: str = "") -> None:
        top = self._contexts[-1]
        if kind == "replacement":  # the parts of an f-string stand side by side
            self._restart(top)
        self._grow(top, BRACKET_WEIGHT if kind == "bracket" else 1)
        self._contexts.append(_Context(kind, quote))

    def _pop(self) -> None:
        self._depth -= self._contexts.pop().chain

    def _close(self, bracket: str) -> None:
        kind = self._contexts[-1].kind
        if kind == "bracket" or (kind == "replacement" and bracket == "}"):
            self._pop()

    def _grow(self, context: _Context, weight: int = 1) -> None:
        context.chain += weight
        self._depth += weight

    def _restart(self, context: _Context) -> None:
        self._depth -= context.chain
        context.chain = 0

    def _newline(self, indent: int, first: str | None) -> None:
        if len(self._contexts) > 1:
            return
        self._restart(self._contexts[0])
        self._in_pattern = first == "case"
        for deeper in [column for column in self._elifs if column > indent]:
            del self._elifs[deeper]
        if first == "elif":
            self._elifs[indent] = self._elifs.get(indent, 0) + 1
        else:
            self._elifs.pop(indent, None)
