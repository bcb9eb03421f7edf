"""Functions that run on a failed rank alone: exception hooks of a trainer, of the interpreter, of a thread."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..source.unparsing import unparse
from ..source.walking import walk

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..names.functions import FunctionInfo
    from ..names.modules import Module

_INSTALLED = ("sys.excepthook", "threading.excepthook", "threading.unraisablehook")


def failure_roots(analysis: Analysis) -> Iterator[tuple[Root, str]]:
    """The functions that an uncaught exception calls, with the name of the hook."""
    installed = dict(_installed(analysis))
    for root in analysis.roots:
        function = root.function
        if function is None or not root.contents.ops:
            continue
        if facts.is_failure_hook(external_bases(function), function.name):
            yield root, function.name
        elif id(function) in installed:
            yield root, installed[id(function)]


def external_bases(function: FunctionInfo) -> list[str]:
    """The library classes that the class of a method derives from."""
    return function.cls.external_bases() if function.cls is not None else []


def _installed(analysis: Analysis) -> Iterator[tuple[int, str]]:
    modules = {id(root.module): root.module for root in analysis.roots}
    for module in modules.values():
        if b"excepthook" not in module.source.content:
            continue
        for node in walk(module.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    hook = unparse(target)
                    if hook in _INSTALLED:
                        yield from ((id(function), hook) for function in _named(module, node.value))


def _named(module: Module, value: ast.expr) -> Iterator[FunctionInfo]:
    """The functions of a file that an expression (a name, ``self.name``, a partial) may hand over."""
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return (function for function in module.all_functions if function.name == name)
