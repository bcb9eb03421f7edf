"""Progress that each rank takes up again where it finds a file of its own, and begins anew where it finds none.

Terminology: a rank's *own* file has the rank in its name. A resume is *silent* where a missing file is no error: the
rank goes on with what it had. It parts the ranks where what was read decides how long a loop with collectives runs.

Method: by the text of the function that looks for the file, since it communicates with nobody and is mostly called by a
framework; the loop is one of the trace trees, found by the name of the attribute. Cost: linear in the text of functions
that ask for files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..facts import lookup as facts
from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Loop, Op, every_node
from .support_events import counts
from .support_imports import program_of, program_text

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.functions import FunctionInfo
    from ..names.modules import Module

_ASKS = frozenset({"exists", "isfile", "is_file"})
_LOADS = re.compile(r"load|read|restore")
_AGREES = re.compile(r"broadcast|reduce|gather|agree")
_LOOKS = re.compile(rb"\bexists\(|\bis_?file\(")


class Resume(NamedTuple):
    """The test for the file, the module it stands in, the restored attribute, and the loop that it decides about."""

    test: ast.If
    module: Module
    attribute: str
    loop: Loop


def resumed_alone(analysis: Analysis) -> Iterator[Resume]:
    """The silent resumes that decide about a loop with collectives."""
    loops: list[tuple[Module, Loop]] | None = None
    for module in analysis.project.relevant_modules():
        if not _LOOKS.search(module.source.content) or b"rank" not in module.source.content:
            continue
        for function in module.all_functions:
            for test, attributes in _silent(function):
                loops = _loops(analysis) if loops is None else loops
                for attribute in attributes:
                    loop = _decided(analysis, module, attribute, loops)
                    if loop is not None:
                        yield Resume(test, module, attribute, loop)
                        break


def _silent(function: FunctionInfo) -> Iterator[tuple[ast.If, list[str]]]:
    """The tests for a file of the rank's own, with the attributes that are restored from it."""
    agrees: bool | None = None
    for block in _blocks(function.node):
        for position, statement in enumerate(block):
            if not isinstance(statement, ast.If) or not _asks_for_own(statement.test, function):
                continue
            agrees = _AGREES.search(unparse(function.node)) is not None if agrees is None else agrees
            if agrees:
                return
            found, missing = statement.body, [*statement.orelse]
            if isinstance(statement.test, ast.UnaryOp):
                if not _returns(statement.body):
                    continue
                found, missing = [*statement.orelse, *block[position + 1 :]], statement.body
            if not any(isinstance(step, ast.Raise) for step in missing):
                yield statement, list(_restored(found))


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for inner in walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(inner, name, None)
            if isinstance(block, list):
                yield block


def _returns(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Return)


def _asks_for_own(test: ast.expr, function: FunctionInfo) -> bool:
    """Whether a test is ``exists(path)`` or ``not exists(path)`` of a path that holds the rank."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(asked, ast.Call) or called_name(asked) not in _ASKS:
        return False
    path = (
        asked.args[0] if asked.args else asked.func.value if isinstance(asked.func, ast.Attribute) else None
    )
    return path is not None and _holds_rank(path, function)


def _holds_rank(path: ast.expr, function: FunctionInfo, depth: int = 0) -> bool:
    """Whether a path is put together with the rank: here, under a name of the function, or in a method of the class."""
    if _names_rank(path):
        return True
    for part in walk(path):
        if isinstance(part, ast.Name) and depth == 0:
            made = [
                node.value
                for node in walk(function.node)
                if isinstance(node, ast.Assign)
                and any(isinstance(target, ast.Name) and target.id == part.id for target in node.targets)
            ]
            if made and all(_holds_rank(value, function, 1) for value in made):
                return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and function.cls is not None:
            method = function.cls.find_method(part.func.attr)
            if method is not None and _names_rank(method.node):
                return True
    return False


def _names_rank(node: ast.AST) -> bool:
    """Whether a name in a piece of code is one by which ranks are called."""
    for part in walk(node):
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        fact = facts.conventional_name(name) or facts.unknown_attribute(name)
        if name == "get_rank" or (fact is not None and fact.varying == "rank" and not fact.main_only):
            return True
    return False


def _restored(block: list[ast.stmt]) -> Iterator[str]:
    """The attributes that are assigned where something is read, as they are written: ``.state.step``."""
    if not any(isinstance(n, ast.Call) and _LOADS.search(called_name(n)) for s in block for n in walk(s)):
        return
    for statement in block:
        for node in walk(statement):
            if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant):
                continue
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield unparse(target).partition(".")[2]


def _loops(analysis: Analysis) -> list[tuple[Module, Loop]]:
    """The loops in which ranks meet."""
    return [
        (root.module, node)
        for root in analysis.roots
        if root.contents.ops
        for node in every_node(root.tree)
        if isinstance(node, Loop) and any(isinstance(op, Op) and counts(op) for op in every_node(node.body))
    ]


def _decided(
    analysis: Analysis, module: Module, attribute: str, loops: list[tuple[Module, Loop]]
) -> Loop | None:
    """A loop of the same program whose rounds an attribute decides, where no rank tells the others of it."""
    asked = re.compile(rf"\.{re.escape(attribute)}\b(?!\()")
    agreed = re.compile(rf"(?:{_AGREES.pattern})\w*\([^\n]*\.{re.escape(attribute)}\b".encode())
    for owner, loop in loops:
        bound = loop.text.partition(" in range(")[2] if loop.form == "for" else loop.text
        if not asked.search(bound):
            continue
        together = owner is module or owner in program_of(module, analysis.project)
        if not together and module not in program_of(owner, analysis.project):
            continue
        if not any(agreed.search(program_text(one, analysis.project)) for one in (owner, module)):
            return loop
    return None
