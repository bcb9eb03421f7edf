"""Decorators of a library, as they are written above a definition."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup
from ..names.dotted import dotted_name
from ..names.symbols import ExternalSymbol

if TYPE_CHECKING:
    from ..facts.fact import Fact
    from ..names.modules import Module


def called_by(decorator: ast.expr) -> ast.expr:
    """What a decorator calls, or is."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def library_name(module: Module, decorator: ast.expr) -> str:
    """The full name of a library's decorator; "" for one of the project, and for what has no name."""
    name = dotted_name(called_by(decorator))
    symbol = module.project.resolve(module, name) if name else None
    return symbol.qualname if isinstance(symbol, ExternalSymbol) else ""


def decorator_fact(module: Module, decorator: ast.expr) -> Fact | None:
    """What is known of a library's decorator."""
    name = library_name(module, decorator)
    return lookup.function(name) if name else None
