"""Apply fixes until none is left: each round lints what the last one made.

A round takes, in each file, the fixes that do not touch one another. What it made is linted; a fix must take its
finding away and bring no new one, so a file that fails this is put back, and its fixes are tried one by one. A
new finding that has a fix of its own may stay until the end: where it is still there, the file is put back too.
Cost: one lint run a round, ``MAX_ROUNDS`` at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..model import Finding
from ..source.reading import SourceFile, decode_source
from .edits import apply_edits, overlap
from .planning import with_fixes
from .registry import fixable_codes
from .texts import raw_text, to_bytes

MAX_ROUNDS = 100
Overlay = Mapping[str, SourceFile]
Key = tuple[str, str, str]  # file, code, message: what stays of a finding when lines move


class Linted(Protocol):
    """What the lint run of one round says."""

    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def sources(self) -> Mapping[str, SourceFile]: ...


Lint = Callable[[Overlay], Linted]


@dataclass
class Fixed:
    """What fixing came to: the changed files as they were and are, the findings that are left, and counts.

    ``refused``: those of them whose fix was undone; ``refused_before``: the same where they stood at first.
    ``mended``: what was fixed, each with the file as it was then, in which its rows count.
    """

    before: dict[str, SourceFile]
    after: dict[str, SourceFile]
    findings: tuple[Finding, ...]
    num_fixed: int = 0
    refused: tuple[Finding, ...] = ()
    refused_before: tuple[Finding, ...] = ()
    mended: tuple[tuple[Finding, SourceFile], ...] = ()


@dataclass
class _State:
    first: Linted
    now: Linted
    overlay: dict[str, SourceFile] = field(default_factory=dict)
    refused: set[Key] = field(default_factory=set)
    carefully: set[str] = field(default_factory=set)  # files whose fixes are tried one by one
    applied: dict[str, list[tuple[Finding, SourceFile]]] = field(default_factory=dict)
    fixed: list[Finding] = field(default_factory=list)
    strict: set[str] = field(
        default_factory=set
    )  # files in which a new finding is refused though it has a fix


def fix_project(lint: Lint, *, unsafe: bool) -> Fixed:
    """Fix what can be fixed; ``lint`` reads the project with some files replaced by an overlay."""
    first = lint({})
    state = _State(first, first)
    for _ in range(MAX_ROUNDS):
        if not _round(lint, state, unsafe) and not _put_back(lint, state):
            break
    else:
        _put_back(lint, state)
    changed = {name: source for name, source in state.overlay.items() if _differs(first, name, source)}
    mended = tuple(each for name in changed for each in state.applied.get(name, ()))
    before = {name: first.sources[name] for name in changed}
    refused = tuple(f for f in state.now.findings if _key(f) in state.refused)
    keys = set(map(_key, refused))
    there = tuple(f for f in first.findings if _key(f) in keys)
    return Fixed(before, changed, state.now.findings, len(mended), refused, there, mended)


def _round(lint: Lint, state: _State, unsafe: bool) -> bool:
    """Choose fixes, lint what they make, keep what is better; False where there is nothing to do."""
    chosen = _choose(state, unsafe)
    if not chosen:
        return False
    trial = dict(state.overlay)
    for name, findings in chosen.items():
        fixed = _applied(state.now.sources[name], findings)
        if fixed is None:
            state.refused.update(map(_key, findings))
            continue
        trial[name] = fixed
    after = lint(trial)
    spoiled = _spoiled(state, after, chosen, unsafe)
    for name in spoiled:
        if len(chosen[name]) == 1:
            state.refused.update(map(_key, chosen[name]))
        state.carefully.add(name)
        _restore(trial, state, name)
    for name in chosen.keys() - spoiled:
        source = state.now.sources[name]
        state.applied.setdefault(name, []).extend((finding, source) for finding in chosen[name])
        state.fixed += chosen[name]
    state.overlay = trial
    state.now = lint(trial) if spoiled else after
    return True


def _choose(state: _State, unsafe: bool) -> dict[str, list[Finding]]:
    chosen: dict[str, list[Finding]] = {}
    candidates = [f for f in state.now.findings if f.code in fixable_codes() and _key(f) not in state.refused]
    for finding in with_fixes(candidates, state.now.sources):
        name, fix = finding.site.filename, finding.fix
        if fix is None or not (unsafe or fix.applicability == "safe"):
            continue
        others = chosen.setdefault(name, [])
        crowded = any(other.fix and overlap(fix.edits, other.fix.edits) for other in others)
        if not crowded and not (others and name in state.carefully):
            others.append(finding)
    return chosen


def _applied(source: SourceFile, findings: list[Finding]) -> SourceFile | None:
    """A file with the fixes of some findings."""
    edits = [edit for finding in findings if finding.fix for edit in finding.fix.edits]
    content = to_bytes(source, apply_edits(raw_text(source), edits))
    made = decode_source(content, source.filename, source.path)
    return made if made.encoding == source.encoding else None


def _spoiled(state: _State, after: Linted, chosen: Mapping[str, list[Finding]], unsafe: bool) -> set[str]:
    """The changed files in which a finding has stayed, or a new one has come."""
    fixed = [finding for findings in chosen.values() for finding in findings]
    spoiled = {key[0] for key in stayed(fixed, state.now.findings, after.findings)}
    new = come(fixed, state.now.findings, after.findings)
    mended = _mendable(new, after, unsafe)
    for key in new:
        if key not in mended or key[0] in state.strict:
            spoiled.update([key[0]] if key[0] in chosen else chosen)
    return spoiled


def stayed(fixed: Iterable[Finding], before: Iterable[Finding], after: Iterable[Finding]) -> set[Key]:
    """The fixed findings that are as many as before."""
    were, are = _counted(before), _counted(after)
    return {key for key in map(_key, fixed) if are[key] >= were[key]}


def come(fixed: Iterable[Finding], before: Iterable[Finding], after: Iterable[Finding]) -> set[Key]:
    """The findings that are new; not those of other rules that only have another text than before."""
    mended = {_key(finding)[:2] for finding in fixed}
    were, are = _counted(before), _counted(after)
    were_of, are_of = Counter(key[:2] for key in were.elements()), Counter(key[:2] for key in are.elements())
    return {
        key
        for key in are
        if are[key] > were[key] and (key[:2] in mended or are_of[key[:2]] > were_of[key[:2]])
    }


def _mendable(new: set[Key], after: Linted, unsafe: bool) -> set[Key]:
    """Those of the new findings that have a fix themselves."""
    fixed = with_fixes([f for f in after.findings if _key(f) in new], after.sources)
    return {_key(f) for f in fixed if f.fix is not None and (unsafe or f.fix.applicability == "safe")}


def _put_back(lint: Lint, state: _State) -> bool:
    """At the end: undo files that hold findings which were not there at first; False where there are none."""
    names = {
        name
        for name, _, _ in come(state.fixed, state.first.findings, state.now.findings)
        if name in state.overlay and name not in state.strict
    }
    for name in names:
        state.overlay[name] = state.first.sources[name]
        state.applied.pop(name, None)
        state.strict.add(name)
        state.carefully.add(name)
    if names:
        state.now = lint(state.overlay)
    return bool(names)


def _restore(trial: dict[str, SourceFile], state: _State, name: str) -> None:
    if name in state.overlay:
        trial[name] = state.overlay[name]
    else:
        trial.pop(name, None)


def _differs(first: Linted, name: str, source: SourceFile) -> bool:
    return first.sources[name].content != source.content


def _counted(findings: Iterable[Finding]) -> Counter[Key]:
    return Counter(map(_key, findings))


def _key(finding: Finding) -> Key:
    return (finding.site.filename, finding.code, finding.message)
