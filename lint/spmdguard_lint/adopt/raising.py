"""Remarks on raises that stay: those in a branch that the rank decides, which end one rank while the others wait."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from ..config import Config
from ..fixes.blocks import last_name
from ..fixes.script import Script, walk
from .alone import read_ranks
from .notes import Note
from .program import Program

_LEAVING = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")  # no errors: nothing defers them
_DEFERRING = ("deferring", "rank_local")
MAX_TEXT = 60


def raise_notes(program: Program, config: Config, found: Collection[tuple[str, int]]) -> list[Note]:
    """A note on each raise that nothing keeps for later; not where the linter has ``found`` something itself."""
    sources = {name: script.source for name, script in program.scripts.items()}
    notes: dict[tuple[str, int], Note] = {}
    for site in read_ranks(sources, config).branches:
        script = program.scripts.get(site.filename)
        branch = script.at(site, cst.If) if script is not None else None
        if script is None or branch is None:
            continue
        for node in _raises(script, branch):
            row = script.positions[node].start.line
            if (site.filename, row) not in found:
                notes.setdefault((site.filename, row), _note(script, branch, node, row))
    return list(notes.values())


def _note(script: Script, branch: cst.If, node: cst.Raise, row: int) -> Note:
    text = (
        f"remark: left as it is: `{_short(script, node)}` in the branch on `{_short(script, branch.test)}` ends some "
        "ranks alone, and the others may wait for them: let every rank raise it, or put it into "
        "`with spmdguard.deferring(...):` or a function with `@spmdguard.rank_local`"
    )
    return Note(script.source.filename, row, text)


def _short(script: Script, node: cst.CSTNode) -> str:
    text = " ".join(script.code(node).split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."


def _raises(script: Script, branch: cst.If) -> Iterator[cst.Raise]:
    """The raises in a branch that leave it as errors."""
    if any(_defers(outer) for outer in script.around(branch)):
        return
    for node in walk(branch):
        if isinstance(node, cst.Raise) and not _leaves(node) and not _kept(script, branch, node):
            yield node


def _leaves(node: cst.Raise) -> bool:
    raised = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
    return raised is not None and last_name(raised) in _LEAVING


def _kept(script: Script, branch: cst.If, node: cst.Raise) -> bool:
    """Whether something between a branch and a raise in it keeps the error, or defines a function of its own."""
    inner: cst.CSTNode = node
    for outer in script.around(node):
        if outer is branch:
            return False
        if isinstance(outer, (cst.FunctionDef, cst.ClassDef)) or _defers(outer):
            return True
        if isinstance(outer, (cst.Try, cst.TryStar)) and outer.handlers and inner is outer.body:
            return True
        inner = outer
    return False


def _defers(node: cst.CSTNode) -> bool:
    """Whether a statement keeps the errors of its body for later."""
    if isinstance(node, cst.With):
        return any(_names_deferring(item.item) for item in node.items)
    return isinstance(node, cst.FunctionDef) and any(_names_deferring(d.decorator) for d in node.decorators)


def _names_deferring(node: cst.BaseExpression) -> bool:
    return last_name(node.func if isinstance(node, cst.Call) else node) in _DEFERRING
