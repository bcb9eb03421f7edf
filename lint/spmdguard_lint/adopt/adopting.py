"""Rewrite a training program to the guarded form, pass after pass, then mend what the linter still finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..config import Config
from ..fixes.applying import Linted, come, fix_project
from ..fixes.marks import marked
from ..fixes.texts import to_bytes
from ..model import Finding
from ..source.reading import SourceFile, decode_source
from .alone import read_ranks
from .decorating import declare_alone, declare_collective, declare_rank_local
from .ending import end_in_order, leave_destruction_to_run
from .frameworks import framework_notes
from .notes import Note
from .program import Program
from .raising import raise_notes
from .stopping import agree_on_stops

Lint = Callable[[Mapping[str, SourceFile]], Linted]
Changed = dict[str, tuple[str, list[Note]]]
_EXITS = frozenset({"SPG102", "SPG302", "SPG303", "SPG304", "SPG306", "SPG307", "SPG308"})


@dataclass
class Adopted:
    """The files before and after, what was done, what to do by hand, and what the linter still finds.

    The rows of ``notes`` and ``remarks`` are those of the files before.
    """

    before: Mapping[str, SourceFile]
    after: dict[str, SourceFile]
    notes: list[Note] = field(default_factory=list)
    remarks: list[Note] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()
    has_loop: bool = True

    def add(self, note: Note, seen: SourceFile) -> None:
        """Say what was done on a row of a file, as it was seen then."""
        moved = note.moved(seen, self.before[note.filename])
        if moved not in self.notes:
            self.notes.append(moved)

    def left(self) -> list[Note]:
        """The findings that are left, as notes."""
        found = (
            Note(f.site.filename, f.site.start.row, f"{f.code} is left: {f.message}") for f in self.findings
        )
        return [note.moved(self.after[note.filename], self.before[note.filename]) for note in found]


def adopt(lint: Lint, config: Config) -> Adopted:
    """Adopt the files that ``lint`` reads; raise ``CannotEdit`` where one of them must not be edited."""
    first = lint({})
    result = Adopted(dict(first.sources), dict(first.sources), findings=first.findings)
    program = Program(result.after)
    result.has_loop = any(True for _ in program.training_loops())
    guards = framework_notes(program, result.has_loop)
    if result.has_loop:
        _rewrite(result, lint, config)
    if result.has_loop or guards:
        found = {(finding.site.filename, finding.site.start.row) for finding in result.findings}
        raises = raise_notes(Program(result.after), config, found)
        raises = [note.moved(result.after[note.filename], result.before[note.filename]) for note in raises]
        result.remarks = [*guards, *raises]
    return result


def _rewrite(result: Adopted, lint: Lint, config: Config) -> None:
    """Every pass, in order."""
    _mend(result, lint, _EXITS)  # an exit that asks for an agreement already needs no second one
    for rewrite in (agree_on_stops, end_in_order, leave_destruction_to_run, declare_collective):
        _take(result, rewrite(Program(result.after)))
    seen = read_ranks(result.after, config)
    _try(result, lint, declare_alone(Program(result.after), seen.branches, seen.meeting))
    findings = lint(result.after).findings
    _take(result, declare_rank_local(Program(result.after), findings, seen.meeting))
    result.findings = _mend(result, lint, None)


def _mend(result: Adopted, lint: Lint, codes: frozenset[str] | None) -> tuple[Finding, ...]:
    """Apply the fixes of some rules, or of all; what is left."""

    def lint_adopted(overlay: Mapping[str, SourceFile]) -> Linted:
        linted = lint({**result.after, **overlay})
        return linted if codes is None else _Some(linted, codes)

    fixed = fix_project(lint_adopted, unsafe=True)
    result.after.update(fixed.after)
    for finding, seen in fixed.mended:
        done = f": {finding.fix.message}" if finding.fix is not None else ""
        calls = marked(finding, "call") if finding.code == "SPG201" else ()  # one finding tells of many
        for site in calls or (finding.site,):
            result.add(Note(site.filename, site.start.row, f"{finding.code} is mended{done}"), seen)
    return fixed.findings


class _Some:
    """The findings of some rules."""

    def __init__(self, linted: Linted, codes: frozenset[str]) -> None:
        self.findings = tuple(finding for finding in linted.findings if finding.code in codes)
        self.sources = linted.sources


def _try(result: Adopted, lint: Lint, changed: Changed) -> None:
    """Take a change that brings no finding."""
    tried = replace(result, after=dict(result.after), notes=list(result.notes))
    _take(tried, changed)
    if not come((), lint(result.after).findings, lint(tried.after).findings):
        result.after, result.notes = tried.after, tried.notes


def _take(result: Adopted, changed: Changed) -> None:
    for name, (text, notes) in changed.items():
        source = result.after[name]
        result.after[name] = decode_source(to_bytes(source, text), source.filename, source.path)
        for note in notes:
            result.add(note, source)
