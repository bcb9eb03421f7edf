"""Agree on a stop at the end of each step, and leave the loops around by it."""

from __future__ import annotations

import libcst as cst

from ..fixes.blocks import last_name, step_from
from ..fixes.imports import import_name
from ..fixes.rewrite import Rewrite
from ..fixes.script import Script, Step, walk
from .notes import Note
from .program import Loop, Program

_JUMPS = (cst.Return, cst.Break, cst.Continue, cst.Raise)


def agree_on_stops(program: Program) -> dict[str, tuple[str, list[Note]]]:
    """The changed texts by file, with what was changed."""
    rewrites: dict[Script, tuple[Rewrite, list[Note]]] = {}
    for script, loop, is_step in program.training_loops():
        if not isinstance(loop.body, cst.IndentedBlock) or _agrees(loop.body):
            continue
        step = loop.body.body[-1] if is_step else _training_step(program, loop)
        if step is None or _jumps_away(step):
            continue
        rewrite, notes = rewrites.setdefault(script, (Rewrite(script), []))
        name = import_name(rewrite, "spmdguard", "sync_should_stop" if is_step else "stop_reason")
        if name is None:
            continue
        rewrite.after(step, step_from(script, f"if {name}():\n    break\n"))
        row = script.positions[loop].start.line
        what = (
            "ends each step with an agreement to stop" if is_step else "is left as well when the ranks stop"
        )
        notes.append(Note(script.source.filename, row, f"the loop {what}"))
    return {s.source.filename: (rewrite.code(), notes) for s, (rewrite, notes) in rewrites.items()}


def _training_step(program: Program, loop: Loop) -> Step | None:
    """The last statement of an outer loop in which the inner one runs."""
    assert isinstance(loop.body, cst.IndentedBlock)
    found = [step for step in loop.body.body if program.trains(step)]
    return found[-1] if found else None  # type: ignore[return-value]  # blocks hold lines and compounds only


def _agrees(body: cst.IndentedBlock) -> bool:
    """Whether a loop agrees on a stop itself."""
    return any(
        isinstance(node, cst.Call)
        and last_name(node.func) in ("sync_should_stop", "stop_reason", "check_trigger")
        for step in body.body
        if not isinstance(step, (cst.For, cst.While))
        for node in walk(step)
    )


def _jumps_away(step: cst.CSTNode) -> bool:
    return isinstance(step, cst.SimpleStatementLine) and isinstance(step.body[-1], _JUMPS)
