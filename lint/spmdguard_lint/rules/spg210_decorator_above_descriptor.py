"""
# decorator-above-descriptor (SPG210)

## What it does
Finds `@rank_local` and `@collective` of spmdguard on top of `@property`, `@staticmethod`, `@classmethod`,
`@cached_property`, a setter or `@contextmanager`, and on a class.

## Why is this bad
Decorators apply from the bottom up: the upper one gets a property, a static method or a factory of context managers,
which is no function whose errors it could keep. spmdguard refuses it with a `TypeError` when the class is defined, so
that the program does not start.

## Example
```python
import shutil

from spmdguard import rank_local


class Scratch:
    @rank_local(default=0.0)
    @property
    def free(self):
        return shutil.disk_usage("/scratch").free
```

## Use instead
```python
import shutil

from spmdguard import rank_local


class Scratch:
    @property
    @rank_local(default=0.0)
    def free(self):
        return shutil.disk_usage("/scratch").free
```

Errors in the block of a context manager are kept by `with deferring("..."):` around what may fail.

## Known limits
Decorators are recognised where they are written above a definition. `rank_local(property(read))` is not looked at.

## Fix safety
No fix: exchange the two lines.

## References
- `spmdguard.rank_local`, `spmdguard.collective`: `docs/concepts.md`
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..facts import lookup
from ..model import Finding
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Node
from ..values.value import place_of
from .registry import rule
from .support_decorators import called_by, decorator_fact, library_name
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.modules import Module

RULE = rule(code="SPG210", name="decorator-above-descriptor", severity="error", status="stable", page=__doc__)
HELP = "put `@{0}` on top of `@{1}`"
HELP_CLASS = "decorate its methods"
_OURS = frozenset({"defer", "mark-collective"})
_NO_FUNCTIONS = frozenset(
    {
        "property",
        "staticmethod",
        "classmethod",
        "functools.cached_property",
        "functools.singledispatchmethod",
        "contextlib.contextmanager",
        "contextlib.asynccontextmanager",
        "abc.abstractproperty",
    }
)
_OF_PROPERTIES = frozenset({"setter", "getter", "deleter"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Every definition with one of our decorators above something that is no function."""
    for module in analysis.project.all_modules:
        if module.contains(b"spmdguard"):
            for node in walk(module.tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    yield from _misplaced(module, node)


def _misplaced(
    module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
) -> Iterator[Finding]:
    for position, decorator in enumerate(node.decorator_list):
        if not _is_ours(module, decorator):
            continue
        text = f"@{unparse(decorator)}"
        where = Node(place_of(module.filename, decorator))
        if isinstance(node, ast.ClassDef):
            message = f"`{text}` cannot decorate the class `{node.name}`: an instance is no call"
            yield finding_at(RULE, where, message, HELP_CLASS, certainty="definite")
            continue
        for below in node.decorator_list[position + 1 : position + 2]:
            if _makes_no_function(module, below):
                kind = unparse(below)
                message = f"`{text}` is above `@{kind}` on `{node.name}`: what it gets is no function"
                upper = HELP.format(kind, unparse(called_by(decorator)))
                yield finding_at(RULE, where, message, upper, certainty="definite")


def _is_ours(module: Module, decorator: ast.expr) -> bool:
    fact = decorator_fact(module, decorator)
    return fact is not None and fact.wraps == "decorator" and fact.event in _OURS


def _makes_no_function(module: Module, decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Attribute) and decorator.attr in _OF_PROPERTIES:
        return True
    return lookup.canonical(library_name(module, decorator)) in _NO_FUNCTIONS
