"""Processes of ``multiprocessing`` that a file starts: which calls do, and what they run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..names.dotted import dotted_name
from ..names.symbols import ExternalSymbol, FunctionSymbol
from ..source.unparsing import unparse
from ..source.walking import walk

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.functions import FunctionInfo
    from ..names.modules import Module

SPAWN = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"})
PROCESS = frozenset({"torch.multiprocessing.Process", "multiprocessing.Process"})
_MAKES = "init_process_group("
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
    """What a process runs, where it is one of some functions, or makes a group; "" otherwise."""
    target = next((k.value for k in call.keywords if k.arg == "target"), None)
    symbol = module.project.resolve(module, dotted_name(target)) if target is not None else None
    if target is None or not isinstance(symbol, FunctionSymbol):
        return ""
    return unparse(target) if id(symbol.info) in functions or makes_group(symbol.info) else ""


def makes_group(info: FunctionInfo) -> bool:
    """Whether a function, or one that it calls by its name, makes a process group: it communicates later on.

    What it then runs may be a module that it imports by a name that it is told.
    """
    if _MAKES in info.text:
        return True
    for node in walk(info.node):
        written = dotted_name(node.func) if isinstance(node, ast.Call) else ""
        symbol = info.module.project.resolve(info.module, written) if written else None
        if isinstance(symbol, FunctionSymbol) and _MAKES in symbol.info.text:
            return True
    return False
