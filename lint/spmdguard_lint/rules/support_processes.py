"""Processes of ``multiprocessing`` that a file starts: which calls do, and what they run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..names.dotted import dotted_name
from ..names.symbols import ExternalSymbol, FunctionSymbol
from ..source.unparsing import unparse

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.modules import Module

SPAWN = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"})
PROCESS = frozenset({"torch.multiprocessing.Process", "multiprocessing.Process"})
WATCHED = frozenset({"exitcode", "sentinel", "is_alive"})


def communicating(analysis: Analysis) -> set[int]:
    """The functions that call a collective, or make a group."""
    return {id(root.function) for root in analysis.roots if root.contents.ops}


def started(module: Module, call: ast.Call) -> str:
    """The known name of what starts a process; a context's ``Process`` is that of ``multiprocessing``."""
    written = dotted_name(call.func)
    last = written.rpartition(".")[2]
    if last not in ("spawn", "start_processes", "Process"):
        return ""
    symbol = module.project.resolve(module, written)
    if isinstance(symbol, ExternalSymbol):
        return facts.canonical(symbol.qualname)
    return "multiprocessing.Process" if last == "Process" and "." in written else ""


def target_of(module: Module, call: ast.Call, functions: set[int]) -> str:
    """What a process runs, where it is one of some functions; "" otherwise."""
    target = next((k.value for k in call.keywords if k.arg == "target"), None)
    symbol = module.project.resolve(module, dotted_name(target)) if target is not None else None
    if target is not None and isinstance(symbol, FunctionSymbol) and id(symbol.info) in functions:
        return unparse(target)
    return ""
