"""Damage real sources: by lines, by tokens, or by trading parts of their trees.

Terminology: a *seed* decides everything; the same seed gives the same sources. Text damage mostly yields
files that cannot be parsed (SPG903); tree trades parse, and give the analysis code that nobody would write.
"""

from __future__ import annotations

import ast
import copy
import random
import re
import sysconfig
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
STDLIB = [
    "contextlib",
    "dataclasses",
    "enum",
    "functools",
    "queue",
    "selectors",
    "socketserver",
    "subprocess",
]
STDLIB += ["tempfile", "threading", "typing", "weakref", "asyncio/tasks", "asyncio/queues", "ast", "inspect"]

TOKEN = re.compile(r"\w+|'[^'\n]*'|\"[^\"\n]*\"|[ \t]+|\n[ \t]*|.", re.DOTALL)
ODD = [
    "\0",
    "\t",
    "\f",
    "\r",
    "\ufeff",
    "é",
    "𝟙",
    "\\",
    "'''",
    '"""',
    "f'{",
    "# spmdguard: ignore[",
    "# noqa: ",
    ":=",
]
ODD += [
    "async ",
    "await ",
    "yield ",
    "match x:\n",
    "case _:",
    "lambda: ",
    "*",
    "**",
    "@",
    "->",
    "...",
    "if ",
    "else:",
]


@cache
def corpus() -> tuple[str, ...]:
    """The case collection and part of the standard library, in a fixed order."""
    paths = sorted(CORPUS.rglob("*.py"))
    library = Path(sysconfig.get_paths()["stdlib"])
    paths += [library / f"{name}.py" for name in STDLIB]
    return tuple(path.read_text(encoding="utf-8") for path in paths if path.exists())


def damaged(chooser: random.Random) -> str:
    """One source of the corpus after a few changes of one sort."""
    text = chooser.choice(corpus())
    change = chooser.choice((damage_lines, damage_tokens, trade_parts, trade_parts))
    return change(text, chooser)


def damage_lines(text: str, chooser: random.Random) -> str:
    """Delete, double, swap and re-indent lines."""
    lines = text.split("\n")
    for _ in range(chooser.randint(1, 6)):
        here, there = chooser.randrange(len(lines)), chooser.randrange(len(lines))
        match chooser.randrange(6):
            case 0 if len(lines) > 1:
                del lines[here]
            case 1:
                lines.insert(there, lines[here])
            case 2:
                lines[here], lines[there] = lines[there], lines[here]
            case 3:
                lines[here] = "    " + lines[here]
            case 4:
                lines[here] = lines[here].removeprefix("    ")
            case _:
                indent = len(lines[there]) - len(lines[there].lstrip())
                lines.insert(there, " " * indent + lines[here].lstrip())
    return "\n".join(lines)


def damage_tokens(text: str, chooser: random.Random) -> str:
    """Delete, double, swap, replace and insert tokens; now and then cut the text off."""
    tokens = TOKEN.findall(text) or ["\n"]
    others = TOKEN.findall(chooser.choice(corpus()))
    for _ in range(chooser.randint(1, 6)):
        here, there = chooser.randrange(len(tokens)), chooser.randrange(len(tokens))
        match chooser.randrange(7):
            case 0 if len(tokens) > 1:
                del tokens[here]
            case 1:
                tokens.insert(there, tokens[here])
            case 2:
                tokens[here], tokens[there] = tokens[there], tokens[here]
            case 3:
                tokens[here] = chooser.choice(others)
            case 4:
                tokens.insert(here, chooser.choice(ODD))
            case 5 if chooser.random() < 0.2:
                tokens = tokens[: here + 1]
            case _:
                tokens[here] = chooser.choice(
                    ("True", "None", "rank", "dist", "self", "0", "x", "return", "()")
                )
    return "".join(tokens)


@cache
def _tree_source(index: int) -> tuple[str, bool]:
    text = corpus()[index]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return text, False
    return text, True


def _some_tree(chooser: random.Random) -> ast.Module:
    while True:
        text, parses = _tree_source(chooser.randrange(len(corpus())))
        if parses:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(text)


def trade_parts(text: str, chooser: random.Random) -> str:
    """Put expressions and statements of other files in the place of a file's own, and print it anew."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        tree = _some_tree(chooser)
    donor = _some_tree(chooser)
    for _ in range(chooser.randint(1, 8)):
        chooser.choice(_TRADES)(tree, donor, chooser)
    try:
        return ast.unparse(tree)
    except (
        ValueError,
        AttributeError,
        TypeError,
        RecursionError,
    ):  # a part in a place where it cannot be printed
        return text


def _trade_expression(tree: ast.AST, donor: ast.AST, chooser: random.Random) -> None:
    spots = [
        (node, name)
        for node in ast.walk(tree)
        for name, value in ast.iter_fields(node)
        if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", ast.Load()), ast.Load)
    ]
    gifts = [
        node
        for node in ast.walk(donor)
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if not isinstance(node, (ast.Starred, ast.Slice, ast.FormattedValue))
    ]
    if spots and gifts:
        node, name = chooser.choice(spots)
        if not isinstance(node, (ast.JoinedStr, ast.FormattedValue, ast.MatchValue)):
            setattr(node, name, copy.deepcopy(chooser.choice(gifts)))


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    fields = ("body", "orelse", "finalbody")
    values = (getattr(node, name, None) for node in ast.walk(tree) for name in fields)
    return [value for value in values if isinstance(value, list) and value and isinstance(value[0], ast.stmt)]


def _trade_statement(tree: ast.AST, donor: ast.AST, chooser: random.Random) -> None:
    body, gifts = (
        chooser.choice(_bodies(tree) or [[ast.Pass()]]),
        chooser.choice(_bodies(donor) or [[ast.Pass()]]),
    )
    body[chooser.randrange(len(body))] = copy.deepcopy(chooser.choice(gifts))


def _insert_statements(tree: ast.AST, donor: ast.AST, chooser: random.Random) -> None:
    body, gifts = (
        chooser.choice(_bodies(tree) or [[ast.Pass()]]),
        chooser.choice(_bodies(donor) or [[ast.Pass()]]),
    )
    where = chooser.randrange(len(body) + 1)
    body[where:where] = copy.deepcopy(gifts[:3])


def _drop_statement(tree: ast.AST, donor: ast.AST, chooser: random.Random) -> None:
    body = chooser.choice(_bodies(tree) or [[ast.Pass()]])
    body[chooser.randrange(len(body))] = ast.Pass()


def _wrap_statement(tree: ast.AST, donor: ast.AST, chooser: random.Random) -> None:
    """Put a statement under a condition, a loop, a handler or a context manager of another file."""
    body = chooser.choice(_bodies(tree) or [[ast.Pass()]])
    where = chooser.randrange(len(body))
    kinds = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.Try, ast.With, ast.FunctionDef, ast.Match)
    shells = [node for node in ast.walk(donor) if isinstance(node, kinds)]
    if not shells:
        return
    shell = copy.deepcopy(chooser.choice(shells))
    parts = _bodies(shell)
    if parts:
        chooser.choice(parts)[:] = [body[where]]
        body[where] = shell


Trade = Callable[[ast.AST, ast.AST, random.Random], None]
_TRADES: Sequence[Trade] = (
    _trade_expression,
    _trade_expression,
    _trade_statement,
    _insert_statements,
    _drop_statement,
    _wrap_statement,
    _wrap_statement,
)
