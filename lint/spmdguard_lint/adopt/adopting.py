"""Rewrite a training program to the guarded form, pass after pass, then mend what the linter still finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..fixes.applying import Linted, fix_project
from ..fixes.texts import to_bytes
from ..model import Finding
from ..source.reading import SourceFile, decode_source
from .decorating import declare_collective, declare_rank_local
from .ending import end_in_order, leave_destruction_to_run
from .program import Program
from .stopping import agree_on_stops

Lint = Callable[[Mapping[str, SourceFile]], Linted]
Changed = dict[str, tuple[str, list[str]]]


@dataclass
class Adopted:
    """The files before and after, what was done, and what the linter still finds."""

    before: Mapping[str, SourceFile]
    after: dict[str, SourceFile]
    notes: list[str] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()


def adopt(lint: Lint) -> Adopted:
    """Adopt the files that ``lint`` reads; raise ``CannotEdit`` where one of them must not be edited."""
    before = dict(lint({}).sources)
    result = Adopted(before, dict(before))
    if not any(True for _ in Program(before).training_loops()):
        result.findings = lint({}).findings
        return result
    for rewrite in (agree_on_stops, end_in_order, leave_destruction_to_run, declare_collective):
        _take(result, rewrite(Program(result.after)))
    _take(result, declare_rank_local(Program(result.after), lint(result.after).findings))

    def lint_adopted(overlay: Mapping[str, SourceFile]) -> Linted:
        return lint({**result.after, **overlay})

    fixed = fix_project(lint_adopted, unsafe=True)
    result.after.update(fixed.after)
    if fixed.num_fixed:
        result.notes.append(f"findings mended by their rules' fixes: {fixed.num_fixed}")
    result.findings = fixed.findings
    return result


def _take(result: Adopted, changed: Changed) -> None:
    for name, (text, notes) in changed.items():
        source = result.after[name]
        result.after[name] = decode_source(to_bytes(source, text), source.filename, source.path)
        result.notes += notes
