"""``@collective`` for the functions that all ranks call in each step, ``@rank_local`` for those that may fail alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import libcst as cst

from ..fixes.blocks import only_call, suspends
from ..fixes.imports import import_name
from ..fixes.marks import marked
from ..fixes.rewrite import Rewrite
from ..fixes.script import Script, walk
from ..model import Finding, Site
from .notes import Note
from .program import LOOPS, Program


def declare_collective(program: Program) -> dict[str, tuple[str, list[Note]]]:
    """Decorate the functions that take a whole step, or its backward pass, and hold no training loop."""
    chosen: list[cst.FunctionDef] = []
    for _, loop, is_step in program.training_loops():
        for call in program.calls(loop.body) if is_step else ():
            target = program.target(call)
            if target is None or "backward" not in program.reached(target.body):
                continue
            has_loop = any(
                isinstance(node, LOOPS) and program.trains(node.body) for node in walk(target.body)
            )
            if not has_loop and not any(target is known for known in chosen):
                chosen.append(target)
    return decorate(program, chosen, "collective", "all ranks call it in each step")


def declare_rank_local(
    program: Program, findings: Iterable[Finding], meeting: Collection[str]
) -> dict[str, tuple[str, list[Note]]]:
    """Decorate the functions in which something may fail on one rank alone, where nobody uses their results."""
    chosen: list[cst.FunctionDef] = []
    for finding in findings:
        script = program.scripts.get(finding.site.filename)
        if finding.code != "SPG201" or script is None:
            continue
        for site in marked(finding, "call"):
            step = script.step_at(site)
            scope = program.scope_of(script, step) if step is not None else None
            if not isinstance(scope, cst.FunctionDef) or any(scope is known for known in chosen):
                continue
            if _may_defer(program, scope, meeting):
                chosen.append(scope)
    return _decorate_outermost(program, chosen)


def declare_alone(
    program: Program, branches: Iterable[Site], meeting: Collection[str]
) -> dict[str, tuple[str, list[Note]]]:
    """Decorate the functions that only some ranks call, by a statement in a branch that the rank decides."""
    chosen: list[cst.FunctionDef] = []
    for site in branches:
        script = program.scripts.get(site.filename)
        branch = script.at(site, cst.If) if script is not None else None
        for step in branch.body.body if branch is not None else ():
            call = only_call(step)
            target = program.target(call) if call is not None else None
            if target is None or any(target is known for known in chosen):
                continue
            if _may_defer(program, target, meeting):
                chosen.append(target)
    return _decorate_outermost(program, chosen)


def _decorate_outermost(
    program: Program, chosen: Sequence[cst.FunctionDef]
) -> dict[str, tuple[str, list[Note]]]:
    outermost = [f for f in chosen if not _called_inside(program, f, chosen)]
    return decorate(program, outermost, "rank_local", "it may fail on one rank alone")


def _called_inside(program: Program, function: cst.FunctionDef, others: Iterable[cst.FunctionDef]) -> bool:
    """Whether all calls of a function stand in other functions that are to be decorated."""
    calls = [
        (script, node)
        for script in program.scripts.values()
        for node in walk(script.module)
        if isinstance(node, cst.Call) and program.target(node) is function
    ]
    around = [program.scope_of(script, node) for script, node in calls]
    return bool(around) and all(any(scope is f for f in others if f is not function) for scope in around)


def _may_defer(program: Program, function: cst.FunctionDef, meeting: Collection[str]) -> bool:
    """Whether a function's result is used nowhere, and it neither trains nor is one of those that meet other ranks."""
    if function.name.value in meeting:
        return False
    if function.asynchronous is not None or suspends([function.body]) or program.reached(function.body):
        return False
    uses = [
        (script, node)
        for script in program.scripts.values()
        for node in walk(script.module)
        if isinstance(node, cst.Name) and node.value == function.name.value and node is not function.name
    ]
    called = [(s, node) for s, node in uses if not isinstance(s.parents[node], (cst.ImportAlias, cst.Arg))]
    return bool(called) and all(_is_statement(script, node) for script, node in called)


def _is_statement(script: Script, name: cst.CSTNode) -> bool:
    """Whether a name is called by a statement that does nothing else."""
    node = script.parents[name]
    if isinstance(node, cst.Attribute):
        node = script.parents[node]
    return isinstance(node, cst.Call) and isinstance(script.parents[node], cst.Expr)


def decorate(
    program: Program, functions: Iterable[cst.FunctionDef], name: str, why: str
) -> dict[str, tuple[str, list[Note]]]:
    """The texts with one of spmdguard's decorators above some functions, closest to the function."""
    rewrites: dict[Script, tuple[Rewrite, list[Note]]] = {}
    for function in functions:
        script = program.script_of[function]
        rewrite, notes = rewrites.setdefault(script, (Rewrite(script), []))
        if any(name in script.code(known) for known in function.decorators):
            continue
        word = import_name(rewrite, "spmdguard", name.removesuffix("()"))
        if word is None:
            continue
        call = cst.parse_expression(word + ("()" if name.endswith("()") else ""))
        made = [*function.decorators, cst.Decorator(call)]
        rewrite.replace(function, function.with_changes(decorators=made))
        row = script.positions[function].start.line
        notes.append(Note(script.source.filename, row, f"`{function.name.value}` gets `@{name}`: {why}"))
    return {s.source.filename: (rewrite.code(), notes) for s, (rewrite, notes) in rewrites.items() if notes}
