"""SPG201: keep the errors of rank-local statements for later, ``with deferring("..."):`` around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from ..model import Finding
from .blocks import bare, expression_from, jumps, names_bound, suspends
from .imports import import_name
from .marks import marked
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, Step, walk


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Unsafe: after an error the rank goes on. None where the project does not defer errors yet."""
    sites = marked(finding, "call")
    if finding.severity == "info" or len(sites) != sum(name == "call" for name, _ in finding.marks):
        return None
    steps: list[Step] = []
    for site in sites:
        step = script.step_at(site)
        if step is None:
            return None
        if not any(step is known for known in steps):
            steps.append(step)
    rewrite = Rewrite(script)
    name = import_name(rewrite, "spmdguard", "deferring")
    if name is None:
        return None
    for run in _runs(script, _outermost(script, steps)):
        if not can_defer(script, run):
            return None
        rewrite.replace_run(run, deferred(script, name, run))
    return Proposal("unsafe", f"keep its error for later, `with {name}(...)`", rewrite.code())


def _outermost(script: Script, steps: Sequence[Step]) -> list[Step]:
    """The statements without those that stand inside another one of them."""
    return [s for s in steps if not any(outer is other for outer in script.around(s) for other in steps)]


def _runs(script: Script, steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Neighbouring statements of one block together."""
    left = list(steps)
    while left:
        first = left.pop(0)
        siblings, position = script.siblings(first)
        run = [first]
        for step in siblings[position + 1 :]:
            if not any(step is other for other in left):
                break
            run.append(step)
        left = [step for step in left if not any(step is other for other in run)]
        yield run


def can_defer(script: Script, run: Sequence[Step]) -> bool:
    """Whether the rest of the program can do without what the statements make."""
    if jumps(run) or suspends(run):
        return False
    if any(isinstance(step, (cst.FunctionDef, cst.ClassDef)) for step in run):
        return False
    bound = names_bound(run)
    if not bound:
        return True
    scope = next(
        (n for n in script.around(run[0]) if isinstance(n, (cst.FunctionDef, cst.Module))), script.module
    )
    inside = {node for step in run for node in walk(step)}
    return not any(
        isinstance(node, cst.Name) and node.value in bound and node not in inside for node in walk(scope)
    )


def deferred(script: Script, name: str, run: Sequence[Step]) -> cst.With:
    """The statements in a block whose error is kept, labelled by the first call in it."""
    label = next(
        (_dotted(node.func) for node in walk(run[0]) if isinstance(node, cst.Call)), "rank-local work"
    )
    manager = expression_from(script, f'{name}("{label}")')
    return cst.With(
        [cst.WithItem(manager)],
        cst.IndentedBlock([bare(run[0]), *run[1:]]),
        leading_lines=run[0].leading_lines,
    )


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr.value}" if before else node.attr.value
    return node.value if isinstance(node, cst.Name) else ""
