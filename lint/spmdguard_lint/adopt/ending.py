"""The order at the end: ``@run()`` above the function that is the run, or the kept error raised behind the teardown.

The *entry* is the function that trains and that the module's own statements call, or start in processes. Inside
it ``run`` destroys the process group, so the program's own destruction goes, with a function that does nothing
else. A script without an entry gets ``raise_if_deferred_error()`` behind the destruction.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..fixes.blocks import last_name, only_call, step_from, without_blank
from ..fixes.imports import import_name
from ..fixes.rewrite import Rewrite
from ..fixes.script import Script, Step, walk
from .decorating import decorate
from .notes import Note
from .program import Program

_DESTROY = "destroy_process_group"


def entries(program: Program) -> list[cst.FunctionDef]:
    """The functions that are runs: started as processes, else called by a module's own statements."""
    started: list[cst.FunctionDef] = []
    called: list[cst.FunctionDef] = []
    for script in program.scripts.values():
        for node in walk(script.module):
            if isinstance(node, cst.Call) and last_name(node.func) in ("spawn", "Process", "start_processes"):
                values = [arg.value for arg in node.args if isinstance(arg.value, cst.Name)]
                names = (value.value for value in values if isinstance(value, cst.Name))
                started += (f for name in names if (f := program.functions.get(name)) is not None)
        for call in _module_calls(program, script):
            target = program.target(call)
            if target is not None:
                called.append(target)
    for group in (started, called):
        found = [function for function in group if program.trains(function.body)]
        if found:
            return found
    return []


def _module_calls(program: Program, script: Script) -> Iterator[cst.Call]:
    """The calls that importing or running the module makes."""
    for step in script.module.body:
        if not isinstance(step, (cst.FunctionDef, cst.ClassDef)):
            yield from program.calls(step)


def end_in_order(program: Program) -> dict[str, tuple[str, list[Note]]]:
    """Decorate the entry, or end the script in order."""
    found = entries(program)
    if found:
        return decorate(program, found[:1], "run()", "it is the run, which ends in order whatever fails")
    changed: dict[str, tuple[str, list[Note]]] = {}
    for script, loop, _ in program.training_loops():
        if isinstance(program.scope_of(script, loop), cst.Module):
            made = _explicit(script)
            if made is not None:
                row = script.positions[loop].start.line
                note = Note(
                    script.source.filename, row, "the kept error is raised behind the end of the script"
                )
                changed[script.source.filename] = (made, [note])
    return changed


def _explicit(script: Script) -> str | None:
    """A script with the kept error raised where it ends."""
    if "raise_if_deferred_error" in script.text:
        return None
    rewrite = Rewrite(script)
    raising = import_name(rewrite, "spmdguard", "raise_if_deferred_error")
    if raising is None:
        return None
    body: list[Step] = list(script.module.body)
    ends = [step for step in body if _destroys(step)]
    rewrite.after(ends[-1] if ends else body[-1], step_from(script, f"{raising}()"))
    return rewrite.code()


def leave_destruction_to_run(program: Program) -> dict[str, tuple[str, list[Note]]]:
    """Remove the destruction of the group from a run, with the calls of functions that do nothing else."""
    changed: dict[str, tuple[str, list[Note]]] = {}
    for entry in entries(program)[:1]:
        script = program.script_of[entry]
        rewrite, notes = Rewrite(script), []
        for node in walk(entry.body):
            if isinstance(node, (cst.SimpleStatementLine, cst.If)) and script.holder(node) is not None:
                if not _only_destroys(program, node) or node in rewrite.instead:
                    continue
                if any(outer in rewrite.instead for outer in script.around(node)):
                    continue
                comments = [line for line in node.leading_lines if line.comment is not None]
                _take_away(rewrite, script, node, comments)
                row = script.positions[node].start.line
                notes.append(Note(script.source.filename, row, "`run` destroys the process group"))
        if notes:
            changed[script.source.filename] = (rewrite.code(), notes)
    return changed


def _take_away(rewrite: Rewrite, script: Script, step: Step, comments: list[cst.EmptyLine]) -> None:
    """Remove a statement; a comment before it moves to the statement behind it, or to the end of the block."""
    siblings, position = script.siblings(step)
    rewrite.replace(step)
    holder = script.holder(step)
    if comments and position + 1 == len(siblings) and holder is not None:
        rewrite.footers.setdefault(holder, []).extend(comments)
    elif comments:
        following = siblings[position + 1]
        kept = without_blank(following).with_changes(leading_lines=[*comments, *following.leading_lines])
        rewrite.replace(following, kept)


def _only_destroys(program: Program, step: cst.CSTNode) -> bool:
    """Whether a statement does nothing but destroy the process group, itself or by a function of the program."""
    call = only_call(step)
    if call is not None:
        target = program.target(call)
        if target is not None:
            return isinstance(target.body, cst.IndentedBlock) and all(
                _only_destroys(program, inner) or _is_text(inner) for inner in target.body.body
            )
        return last_name(call.func) == _DESTROY
    if isinstance(step, cst.If) and step.orelse is None and isinstance(step.body, cst.IndentedBlock):
        return all(_only_destroys(program, inner) for inner in step.body.body)
    return False


def _is_text(step: cst.CSTNode) -> bool:
    if not isinstance(step, cst.SimpleStatementLine) or not isinstance(step.body[0], cst.Expr):
        return False
    return isinstance(step.body[0].value, (cst.SimpleString, cst.ConcatenatedString))


def _destroys(step: cst.CSTNode) -> bool:
    return any(isinstance(node, cst.Call) and last_name(node.func) == _DESTROY for node in walk(step))
