"""Daemon threads that write files, and whether anybody waits for them before the program ends.

Terminology: a thread is *drained* when something waits for it: its ``join``, that of its queue, a question to an event.
The *waiting* methods of a class do so, or call one that does. The *holders* of a class are the names and attributes to
which its instances are assigned; an instance that goes elsewhere (an argument, a result) is taken to be waited for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..facts import lookup as facts
from ..names.bindings import ImportBinding
from ..names.dotted import called_name, dotted_name
from ..names.symbols import ClassSymbol, ExternalSymbol, FunctionSymbol
from ..source.unparsing import unparse
from ..source.walking import walk
from .support_launches import Function, own_nodes

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo
    from ..names.modules import Module

_THREAD = "threading.Thread"
_WRITES = re.compile(r"\b(?:save|savez|save_file|save_checkpoint|save_pretrained|copytree|pickle\.dump)\(")
_WAITS = frozenset(
    {"join", "wait", "empty", "is_alive", "result", "unfinished_tasks", "qsize", "join_thread"}
)
_ENDING = frozenset({"__exit__", "__del__"})
_DEPTH = 3


class Daemon(NamedTuple):
    """A thread that nobody waits for: where it is made, what it runs, and a method that would wait for it."""

    at: ast.Call | ast.ClassDef
    target: str
    unused: str


def undrained(module: Module, others: Iterable[Module]) -> Iterator[Daemon]:
    """The daemon threads of a file that write files and are not waited for."""
    content = module.source.content
    if not (b"daemon" in content or b"setDaemon" in content) or b"Thread" not in content:
        return
    modules = _importers(module, others)
    for function in module.all_functions:
        if not isinstance(function.node, Function):
            continue
        for node in own_nodes(function.node):
            if isinstance(node, ast.Assign) and _is_thread(module, node.value):
                assert isinstance(node.value, ast.Call)
                if _is_daemon(node.value) or _made_daemon(function.node, node.targets[0]):
                    yield from _assigned(function, node, node.value, modules)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                made = node.func.value  # Thread(...).start()
                daemon = isinstance(made, ast.Call) and _is_thread(module, made) and _is_daemon(made)
                if isinstance(made, ast.Call) and daemon and not _waits(function.node):
                    yield from _writing(function, made, "")
    for cls in module.all_classes:
        yield from _of_class(cls, modules)


def _of_class(cls: ClassInfo, modules: list[Module]) -> Iterator[Daemon]:
    """A class of threads that are daemons."""
    run, init = cls.methods.get("run"), cls.methods.get("__init__")
    if (
        run is None
        or init is None
        or not any(facts.canonical(base) == _THREAD for base in cls.external_bases())
    ):
        return
    calls = (node for node in walk(init.node) if isinstance(node, ast.Call))
    made = next((call for call in calls if called_name(call) == "__init__" and _is_daemon(call)), None)
    own = ast.Name(id=str(init.self_name), ctx=ast.Load())
    if made is None and not _made_daemon(init.node, own):
        return
    waiting = _waiting_methods(cls, run)
    if waiting is not None and _writes(run, _DEPTH) and _nobody_waits(cls, waiting, modules):
        yield Daemon(made or cls.node, f"{cls.name}.run", min(waiting - _ENDING, default=""))


def _made_daemon(function: ast.AST, thread: ast.expr) -> bool:
    """``thread.daemon = True`` or ``thread.setDaemon(True)`` somewhere in a function."""
    written = dotted_name(thread)
    for node in walk(function):
        if isinstance(node, ast.Assign) and dotted_name(node.targets[0]) == f"{written}.daemon":
            return isinstance(node.value, ast.Constant) and node.value.value is True
        if isinstance(node, ast.Call) and dotted_name(node.func) == f"{written}.setDaemon":
            return True
    return False


def _assigned(
    function: FunctionInfo, node: ast.Assign, call: ast.Call, modules: list[Module]
) -> Iterator[Daemon]:
    target = node.targets[0]
    if (
        isinstance(target, ast.Name)
        and not _waits(function.node)
        and not _goes_on(function.node, {target.id})
    ):
        yield from _writing(function, call, "")
    elif isinstance(target, ast.Attribute) and dotted_name(target.value) == function.self_name:
        cls = function.cls
        run = _target(function, call)
        if cls is not None and run is not None:
            waiting = _waiting_methods(cls, run)
            if waiting is not None and _nobody_waits(cls, waiting, modules):
                yield from _writing(function, call, min(waiting - _ENDING, default=""))


def _writing(function: FunctionInfo, call: ast.Call, unused: str) -> Iterator[Daemon]:
    run = _target(function, call)
    if run is not None and _writes(run, _DEPTH):
        given = next(k.value for k in call.keywords if k.arg == "target")
        yield Daemon(call, unparse(given), unused)


def _is_thread(module: Module, value: object) -> bool:
    """Whether an expression is ``Thread(target=...)``."""
    if not isinstance(value, ast.Call) or called_name(value) != "Thread":
        return False
    symbol = module.project.resolve(module, dotted_name(value.func))
    known = isinstance(symbol, ExternalSymbol) and facts.canonical(symbol.qualname) == _THREAD
    return known and any(k.arg == "target" for k in value.keywords)


def _is_daemon(call: ast.Call) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "daemon"), None)
    return isinstance(given, ast.Constant) and given.value is True


def _target(function: FunctionInfo, call: ast.Call) -> FunctionInfo | None:
    """The function of the project that a thread runs."""
    written = dotted_name(next(k.value for k in call.keywords if k.arg == "target"))
    owner, _, name = written.rpartition(".")
    if owner and owner == function.self_name and function.cls is not None:
        return function.cls.find_method(name)
    if written in function.nested_functions:
        return function.nested_functions[written]
    symbol = function.module.project.resolve(function.module, written) if written else None
    return symbol.info if isinstance(symbol, FunctionSymbol) else None


def _writes(function: FunctionInfo, depth: int) -> bool:
    """Whether a function, or one that it calls, writes what is worth keeping."""
    if _WRITES.search(unparse(function.node)):
        return True
    return depth > 0 and any(_writes(called, depth - 1) for called in _called(function))


def _called(function: FunctionInfo) -> Iterator[FunctionInfo]:
    for node in walk(function.node):
        if isinstance(node, ast.Call):
            owner, _, name = dotted_name(node.func).rpartition(".")
            if owner and owner == function.self_name and function.cls is not None:
                method = function.cls.find_method(name)
                if method is not None and method is not function:
                    yield method
            elif name and not owner:
                symbol = function.module.project.resolve(function.module, name)
                if isinstance(symbol, FunctionSymbol) and symbol.info is not function:
                    yield symbol.info


def _waits(node: ast.AST) -> bool:
    """Whether a function waits for something, or asks whether it is done."""
    return any(
        isinstance(part, ast.Attribute)
        and part.attr in _WAITS
        and not isinstance(part.value, (ast.Constant, ast.JoinedStr))
        and not dotted_name(part.value).endswith("path")
        for part in walk(node)
    )


def _waiting_methods(cls: ClassInfo, run: FunctionInfo) -> set[str] | None:
    """The methods that wait for the thread; None where one of them is handed on, to be called by others."""
    methods = [m for owner in cls.mro() for m in owner.methods.values() if m is not run]
    waiting = {m.name for m in methods if _waits(m.node)}
    for _ in methods:
        waiting |= {m.name for m in methods if not waiting.isdisjoint(_own_names(m, calls=True))}
    handed = any(not waiting.isdisjoint(_own_names(m, calls=False)) for m in methods)
    return None if handed or "__init__" in waiting else waiting


def _own_names(method: FunctionInfo, *, calls: bool) -> set[str]:
    """The methods of its own object that a method calls, or those that it mentions without a call."""
    called = {id(node.func) for node in walk(method.node) if isinstance(node, ast.Call)}
    return {
        node.attr
        for node in walk(method.node)
        if isinstance(node, ast.Attribute)
        and dotted_name(node.value) == method.self_name
        and (id(node) in called) is calls
    }


def _nobody_waits(cls: ClassInfo, waiting: set[str], modules: list[Module]) -> bool:
    """Whether instances are made, stay with their holders, and no waiting method of a holder is mentioned."""
    holders: set[str] = set()
    word = cls.name.encode()
    for module in modules:
        if word in module.source.content:
            found = _holders(cls, module)
            if found is None:
                return False
            holders |= found
    if not holders:
        return False
    asking = waiting | _WAITS
    for module in modules:
        for node in walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in asking and _of_holder(node, holders):
                return False
        if _goes_on(module.tree, holders):
            return False
    return True


def _of_holder(node: ast.Attribute, holders: set[str]) -> bool:
    return not holders.isdisjoint(dotted_name(node.value).split("."))


def _importers(module: Module, others: Iterable[Module]) -> list[Module]:
    """A file, and those that import it, directly or through others."""
    found = {module.name: module}
    left = [other for other in others if other is not module]
    while True:
        added = [other for other in left if any(_imports(other, name) for name in found)]
        if not added:
            return list(found.values())
        found.update((other.name, other) for other in added)
        left = [other for other in left if other.name not in found]


def _imports(module: Module, name: str) -> bool:
    targets = (
        b.target for bindings in module.bindings.values() for b in bindings if isinstance(b, ImportBinding)
    )
    return any(target == name or target.startswith(name + ".") for target in targets)


def _holders(cls: ClassInfo, module: Module) -> set[str] | None:
    """The last names of what instances of a class are assigned to; None where one goes elsewhere."""
    found: set[str] = set()
    assigned: set[int] = set()
    for node in walk(module.tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = node.value
            parts = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
            for part in parts:
                if isinstance(part, ast.Call) and _makes(cls, module, part):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    found |= {dotted_name(target).rpartition(".")[2] for target in targets}
                    assigned.add(id(part))
    for node in walk(module.tree):
        if isinstance(node, ast.Call) and id(node) not in assigned and _makes(cls, module, node):
            return None
    return None if "" in found else found


def _makes(cls: ClassInfo, module: Module, call: ast.Call) -> bool:
    if called_name(call) != cls.name:
        return False
    symbol = module.project.resolve(module, dotted_name(call.func))
    return isinstance(symbol, ClassSymbol) and symbol.info is cls


def _goes_on(tree: ast.AST, names: set[str]) -> bool:
    """Whether something held is handed to a call, given back, put into a container or entered by ``with``."""
    for node in walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            parts = [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, (ast.Return, ast.Yield, ast.Assign)):
            parts = [node.value]
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = list(node.elts)
        elif isinstance(node, ast.Dict):
            parts = list(node.values)
        elif isinstance(node, ast.withitem):
            parts = [node.context_expr]
        for part in parts:
            loaded = isinstance(getattr(part, "ctx", ast.Load()), ast.Load)
            if loaded and part is not None and dotted_name(part).rpartition(".")[2] in names - {""}:
                return True
    return False
