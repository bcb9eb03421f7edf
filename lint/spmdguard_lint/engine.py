"""One lint run: find files, read them, analyse them as one project, apply suppressions and selection.

The engine owns what no single rule can know: files that cannot be read (SPG903) and comments that silence
nothing or name nothing (SPG901, SPG902). Suppressions are applied to all findings before the selection, so a
suppression counts as used whatever is selected. The order of the findings depends on nothing but the input.
"""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from spmdguard_lint.cache.keys import Input, run_key
from spmdguard_lint.cache.parts import PartResults
from spmdguard_lint.cache.store import Cache, Stored
from spmdguard_lint.config import Config
from spmdguard_lint.deep_stack import with_deep_stack
from spmdguard_lint.model import Finding, Location, Progress, Site
from spmdguard_lint.overlaps import overruled
from spmdguard_lint.rules import registry
from spmdguard_lint.source.discovery import discover
from spmdguard_lint.source.parsing import CannotParse, check_syntax, gc_paused
from spmdguard_lint.source.reading import CannotRead, SourceFile, decode_source, read_bytes
from spmdguard_lint.source.suppressions import Suppression

if TYPE_CHECKING:
    from spmdguard_lint.names.project import Project

_WORTH_COLLECTING = 300_000  # bytes parsed
Use = tuple[str, Suppression, str]  # in this file, this comment silenced a finding of this code
# What analyses the project: (project, config, progress) -> findings.
Analysis = Callable[["Project", Config, "Progress | None"], Iterable[Finding]]


@dataclass(frozen=True)
class StandardInput:
    """Source text given on standard input, and the file name that it goes by."""

    content: bytes
    filename: str = "-"


@dataclass(frozen=True)
class LintResult:
    """What a run found. ``sources`` has the text of every file that was read, by displayed name.

    ``num_advice`` counts, by code, findings that would show if their rule were selected by name. ``num_analysed`` is
    the number of files of the parts that this run has analysed; what was found in all others was known.
    """

    findings: tuple[Finding, ...]
    num_files: int
    num_suppressed: int = 0
    num_advice: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, SourceFile] = field(default_factory=dict, repr=False)
    num_analysed: int = 0


def lint(
    paths: Sequence[str | Path],
    config: Config,
    *,
    stdin: StandardInput | None = None,
    progress: Progress | None = None,
    analysis: Analysis | None = None,
    overlay: Mapping[str, SourceFile] | None = None,
    cache: Cache | None = None,
) -> LintResult:
    """Lint the files at and below ``paths``; raise ``NoSuchPath`` for a path that does not exist.

    ``overlay`` holds texts to read in place of those on disk, by displayed name. With a ``cache``, a run on
    nothing but files is looked up there first.
    """
    inputs = _inputs(paths, config, progress)
    key = ""
    earlier = None
    if cache is not None and stdin is None and analysis is None and not overlay:
        key = run_key(inputs, config)
        known = cache.get(key)
        if known is not None:
            return _recalled(known, inputs)
        earlier = PartResults(cache, paths, config)
    result = _lint(inputs, config, stdin, progress, analysis, overlay, earlier)
    if cache is not None and key:
        stored = Stored(result.findings, result.num_files, result.num_suppressed, result.num_advice)
        cache.put(key, stored)
    return result


def _recalled(known: Stored, inputs: Sequence[Input]) -> LintResult:
    """The result of an earlier run over the same files, with the texts that its findings speak of."""
    named = {finding.site.filename for finding in known.findings}
    named |= {step.site.filename for finding in known.findings for step in finding.trail}
    sources: dict[str, SourceFile] = {}
    for one in inputs:
        if one.filename in named and one.content is not None:
            with contextlib.suppress(CannotRead):  # a finding of its own says why
                sources[one.filename] = decode_source(one.content, one.filename, one.path)
    return LintResult(known.findings, known.num_files, known.num_suppressed, known.num_advice, sources)


def _lint(
    inputs: Sequence[Input],
    config: Config,
    stdin: StandardInput | None,
    progress: Progress | None,
    analysis: Analysis | None,
    overlay: Mapping[str, SourceFile] | None,
    earlier: PartResults | None,
) -> LintResult:
    sources, findings = _decode(inputs, stdin)
    if overlay:
        sources = [overlay.get(source.filename, source) for source in sources]
    num_files = len(sources) + len(findings)
    findings.extend(with_deep_stack(lambda: _analyse(sources, config, progress, analysis, earlier)))
    by_name = {source.filename: source for source in sources}
    used: set[Use] = set()
    kept = _apply_suppressions(findings, by_name, used)
    num_suppressed = len(findings) - len(kept)
    of_comments = [finding for source in sources for finding in _comment_findings(source, used, config)]
    kept.extend(_apply_suppressions(of_comments, by_name, set()))
    doubled = overruled(finding for finding in findings if _is_reported(finding, config))
    chosen = {finding for finding in kept if _is_reported(finding, config)} - doubled
    advice = Counter(finding.code for finding in set(kept) - chosen if _is_quiet(finding, config))
    num_analysed = len(sources) - (earlier.num_found if earlier is not None else 0)
    reported = tuple(sorted(chosen, key=_order))
    return LintResult(reported, num_files, num_suppressed, advice, by_name, num_analysed)


def _inputs(paths: Sequence[str | Path], config: Config, progress: Progress | None) -> list[Input]:
    """The files to lint with their bytes."""
    files = discover(paths, config.exclusion)
    if progress is not None:
        progress.phase("reading", len(files))
    inputs: list[Input] = []
    for file in files:
        try:
            inputs.append(Input(file.filename, file.path, read_bytes(file.path, file.filename)))
        except CannotRead as error:
            inputs.append(Input(file.filename, file.path, None, error.reason))
        if progress is not None:
            progress.advance()
    return inputs


def _decode(inputs: Sequence[Input], stdin: StandardInput | None) -> tuple[list[SourceFile], list[Finding]]:
    sources: list[SourceFile] = []
    unreadable: list[Finding] = []
    if stdin is not None:
        try:
            sources.append(decode_source(stdin.content, stdin.filename))
        except CannotRead as error:
            unreadable.append(cannot_read(error))
    for one in inputs:
        try:
            if one.content is None:
                raise CannotRead(one.filename, 1, 1, one.problem)
            sources.append(decode_source(one.content, one.filename, one.path))
        except CannotRead as error:
            unreadable.append(cannot_read(error))
    return sources, unreadable


def _analyse(
    sources: Sequence[SourceFile],
    config: Config,
    progress: Progress | None,
    analysis: Analysis | None,
    earlier: PartResults | None,
) -> list[Finding]:
    from spmdguard_lint.names.project import Project

    if analysis is None:
        from spmdguard_lint.analysis import analyse

        analysis = analyse
    names = config.collectives + config.rank_sources + config.uniform_functions + config.rank_local
    project = Project.load(sources, extra_markers=names)
    if progress is not None:
        progress.phase("analysing", len(sources))
    findings: list[Finding] = []
    with gc_paused():
        for part in project.parts():
            counted = _PartProgress(progress, len(part.all_modules))
            known = earlier.find(part) if earlier is not None else None
            if known is not None and earlier is not None:
                changed = [m.asked.source for m in part.all_modules if m.filename in known.changed]
                problems = [*known.problems, *_syntax_errors(changed, counted)]
                findings += known.findings
                earlier.add_again(known, problems)
            else:
                found = [*analysis(part, config, counted), *map(cannot_read, part.errors)]
                unparsed = [module.asked.source for module in part.all_modules if not module.is_parsed]
                problems = list(_syntax_errors(unparsed, counted))
                findings += found
                if earlier is not None:
                    earlier.add(part, found, problems)
            findings += problems
            counted.finish()
            if part is not project and part.parsed_bytes > _WORTH_COLLECTING:
                del part, known
                gc.collect()
    if earlier is not None:
        earlier.save()
    return findings


class _PartProgress:
    """Counts the files of one part of a run."""

    def __init__(self, progress: Progress | None, num_files: int) -> None:
        self._progress = progress
        self._left = num_files

    def phase(self, label: str, total: int) -> None:
        """A part has no phases of its own."""

    def advance(self, count: int = 1) -> None:
        if self._progress is not None:
            self._progress.advance(min(count, self._left))
        self._left -= min(count, self._left)

    def finish(self) -> None:
        self.advance(self._left)


def _syntax_errors(sources: Sequence[SourceFile], progress: Progress) -> Iterator[Finding]:
    """What is wrong with files that the analysis needed not parse: none is skipped in silence."""
    for source in sources:
        try:
            check_syntax(source)
        except CannotParse as error:
            yield cannot_read(error)
        progress.advance()


class Unreadable(Protocol):
    """What ``CannotRead`` and ``CannotParse`` have in common."""

    filename: str
    row: int
    column: int
    reason: str


class CommentSpan(Protocol):
    """Where a comment stands."""

    @property
    def row(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def end_column(self) -> int: ...


def cannot_read(error: Unreadable) -> Finding:
    """SPG903 for a ``CannotRead`` or ``CannotParse``."""
    place = Location(error.row, error.column)
    return Finding(
        code="SPG903",
        name="cannot-parse",
        severity="error",
        certainty="definite",
        message=f"this file was not checked: {error.reason}",
        help="correct the file, or leave it out with `extend-exclude` in [tool.spmdguard.lint]",
        site=Site(error.filename, place, place),
    )


def _apply_suppressions(
    findings: Iterable[Finding], sources: Mapping[str, SourceFile], used: set[Use]
) -> list[Finding]:
    """The findings that no comment silences; ``used`` learns which comments silenced what."""
    kept: list[Finding] = []
    for finding in findings:
        filename, row = finding.site.filename, finding.site.start.row
        source = sources.get(filename)
        suppressions = source.comments.suppressions if source else ()
        names = [(finding.code, finding.name), *registry.merged_into(finding.code)] if suppressions else []
        silencing = [s for s in suppressions if any(s.covers(row, code, name) for code, name in names)]
        used.update((filename, suppression, finding.code) for suppression in silencing)
        if not silencing:
            kept.append(finding)
    return kept


def _comment_findings(source: SourceFile, used: set[Use], config: Config) -> Iterator[Finding]:
    """SPG901 and SPG902 for the comments of one file."""
    if b"spmdguard:" not in source.content and b"SPG" not in source.content:
        return
    for unknown in source.comments.unknown:
        word = unknown.word or "nothing"
        message = f"`# spmdguard:` is followed by `{word}`, which is none of its words"
        yield _meta("SPG902", message, _nearest(unknown.word), _span(source, unknown))
    for suppression in source.comments.suppressions:
        site = _span(source, suppression)
        for name in suppression.codes:
            codes = registry.codes_of(name)
            if not codes:
                yield _meta("SPG902", f"`{name}` is no rule", _nearest(name), site)
            elif not any((source.filename, suppression, code) in used for code in codes) and all(
                _was_looked_for(code, config) for code in codes
            ):
                message = f"this comment silences no {registry.title(name)}"
                yield _meta("SPG901", message, "remove the comment, or the code from it", site)
        is_bare = not (suppression.codes or suppression.noqa)
        if is_bare and not any((source.filename, suppression, code) in used for code in registry.codes()):
            yield _meta("SPG901", "this comment silences nothing", "remove the comment", site)


def _was_looked_for(code: str, config: Config) -> bool:
    info = registry.rule_for(code)
    return info is not None and config.looks_for(code, info.status)


def _nearest(word: str) -> str:
    import difflib

    known = ["ignore", "uniform", "protocol", *registry.codes(), *registry.codes().values()]
    close = difflib.get_close_matches(word, known, n=1) or difflib.get_close_matches(word.upper(), known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return "write `ignore[CODE]`, `uniform` or `protocol`; `spmdguard rule --all` lists the codes"


def _span(source: SourceFile, comment: CommentSpan) -> Site:
    return Site(
        source.filename, Location(comment.row, comment.column), Location(comment.row, comment.end_column)
    )


def _meta(code: str, message: str, help_text: str, site: Site) -> Finding:
    return Finding(code, registry.codes()[code], "warning", "definite", message, help_text, site)


def _is_reported(finding: Finding, config: Config) -> bool:
    info = registry.rule_for(finding.code)
    if not config.looks_for(finding.code, info.status if info else "stable"):
        return False
    if config.ignores_in_file(finding.code, finding.site.filename):
        return False
    if finding.severity == "info" and not config.is_named(finding.code):
        return False
    return config.shows(finding.certainty) or finding.code in registry.ALWAYS_REPORTED


def _is_quiet(finding: Finding, config: Config) -> bool:
    """Whether only its severity keeps a finding from being reported: advice, which a rule's own code selects."""
    if finding.severity != "info" or finding.code in registry.ALWAYS_REPORTED:
        return False
    return _is_reported(replace(finding, severity="warning"), config)


def _order(finding: Finding) -> tuple[Any, ...]:
    site = finding.site
    return (site.filename, site.start, finding.code, site.end, finding.message, finding.help)
