"""Functions that one rank alone runs: they are only ever handed to a function that calls them there.

Terminology: a *runner* is a function whose first argument is a function that it calls under a test for one rank and
nowhere else, itself or through another runner (``run_on_main(prepare, args)``, ``on_main(prepare)()``). What is named
nowhere but as the first argument of runners is no entry of a run of all ranks; neither is what such functions alone
call. Names are compared as they are written. Cost: one search of each file for each runner and each such name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..source.parsing import CannotParse
from ..source.unparsing import unparse
from ..source.walking import children, walk

if TYPE_CHECKING:
    from .functions import FunctionInfo
    from .modules import Module

_TEST = r"(?:is|if)_(?:\w+_)?(?:main|master|rank_?(?:0|zero)|primary)\w*|\brank\w*(?:\([^()]*\))? *== *0\b"
_ONE = re.compile(_TEST)
_ONE_IN_FILE = re.compile(_TEST.encode())
_ONLY_IF = "not "


def run_by_one_rank(modules: Sequence[Module]) -> set[FunctionInfo]:
    """The functions of some modules that one rank alone runs."""
    runners = _runners(modules)
    if not runners:
        return set()
    handed = [re.compile(_handing(name, argument)) for name, argument in sorted(runners.items())]
    names = {
        match[1]
        for module in modules
        for pattern in handed
        for match in pattern.finditer(module.source.content)
    }
    only = {
        name.decode() for name in names if all(_is_handed_only(module, name, handed) for module in modules)
    }
    found = {
        info for module in modules for info in _functions(module) if _is_free(info) and info.name in only
    }
    for module in {info.module for info in found}:
        found |= _called_by(module, {info for info in found if info.module is module}, modules)
    return found


def _handing(runner: str, argument: str) -> bytes:
    """A call of a runner: what it is given as its first argument is group 1."""
    return rf"\b{runner}\(\s*(?:{argument}\s*=\s*)?([A-Za-z_]\w*)\s*[,)]".encode()


def _functions(module: Module) -> list[FunctionInfo]:
    """The functions of a file; none where it cannot be parsed, which is reported elsewhere."""
    try:
        return module.all_functions
    except CannotParse:
        return []


def _is_free(info: FunctionInfo) -> bool:
    return info.cls is None and info.parent is None


def _runners(modules: Sequence[Module]) -> dict[str, str]:
    """The names of the runners, and of their first arguments."""
    found: dict[str, str] = {}
    others: list[FunctionInfo] = []
    for module in modules:
        if not _ONE_IN_FILE.search(module.source.content):
            continue
        for info in _functions(module):
            argument = _first_argument(info)
            if argument and re.search(rf"\b{argument}\(|\({argument}\)", info.text):
                if _runs_on_one(info, argument):
                    found[info.name] = argument
                else:
                    others.append(info)
    for info in others:
        argument = _first_argument(info)
        if _hands_on(info, argument, found):
            found[info.name] = argument
    return found


def _first_argument(info: FunctionInfo) -> str:
    arguments = info.header.args
    given = [*arguments.posonlyargs, *arguments.args]
    return given[0].arg if given and _is_free(info) else ""


def _runs_on_one(info: FunctionInfo, argument: str) -> bool:
    """Whether a function calls its argument under a test for one rank, and nowhere else."""
    calls = list(_calls(info.node, argument, under=False))
    return bool(calls) and all(calls)


def _calls(node: ast.AST, name: str, *, under: bool) -> Iterator[bool]:
    """For each call of a name, whether it stands under a test for one rank."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
        yield under
    if isinstance(node, ast.If):
        test = unparse(node.test)
        one = _ONE.search(test) is not None and not test.startswith(_ONLY_IF)
        for statement in node.body:
            yield from _calls(statement, name, under=under or one)
        for other in (node.test, *node.orelse):
            yield from _calls(other, name, under=under)
        return
    for child in children(node):
        yield from _calls(child, name, under=under)


def _hands_on(info: FunctionInfo, argument: str, runners: dict[str, str]) -> bool:
    """Whether a function does nothing with its argument but hand it to runners."""
    handed = {
        node.args[0]
        for node in walk(info.node)
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.func, ast.Name)
        and node.func.id in runners
    }
    uses = [node for node in walk(info.node) if isinstance(node, ast.Name) and node.id == argument]
    return bool(uses) and all(use in handed for use in uses)


def _is_handed_only(module: Module, name: bytes, handed: list[re.Pattern[bytes]]) -> bool:
    """Whether a file names a function only where it defines or imports it, or hands it to a runner."""
    content = module.source.content
    if name not in content:
        return True
    allowed = {
        match.start(1) for pattern in handed for match in pattern.finditer(content) if match[1] == name
    }
    bound = re.compile(rb"(?:\bdef +|\bimport\b[^\n(]*|\bimport *\([^)]*)\b(" + name + rb")\b")
    allowed |= {match.start(1) for match in bound.finditer(content)}
    return all(match.start() in allowed for match in _uses(name, content))


def _uses(name: bytes, content: bytes) -> Iterator[re.Match[bytes]]:
    return re.finditer(rb"\b" + name + rb"\b", content)


def _called_by(module: Module, ones: set[FunctionInfo], modules: Sequence[Module]) -> set[FunctionInfo]:
    """The functions of a module that are named nowhere but in some others of it, and in what those call."""
    found = set(ones)
    free = [info for info in _functions(module) if _is_free(info)]
    content = module.source.content
    while True:
        rows = [range(info.header.lineno, (info.header.end_lineno or 0) + 1) for info in found]
        more = {
            info
            for info in free
            if info not in found
            and _only_in(info, content, rows)
            and not any(
                info.name.encode() in other.source.content for other in modules if other is not module
            )
        }
        if not more:
            return found
        found |= more


def _only_in(info: FunctionInfo, content: bytes, rows: list[range]) -> bool:
    own = range(info.header.lineno, (info.header.end_lineno or 0) + 1)
    at = [content.count(b"\n", 0, match.start()) + 1 for match in _uses(info.name.encode(), content)]
    inside = [any(row in some for some in rows) for row in at if row not in own]
    return bool(inside) and all(inside)
