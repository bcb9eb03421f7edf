"""The commands ``spmdguard lint`` and ``spmdguard rule``.

Exit codes: 0 nothing found, 1 something found, 2 the run could not be done as asked.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from spmdguard_lint.cache.store import FOLDER, Cache
from spmdguard_lint.config import Config, ConfigError, load_config, with_options
from spmdguard_lint.engine import Analysis, LintResult, StandardInput, lint
from spmdguard_lint.model import Applicability, Finding
from spmdguard_lint.report.style import Style
from spmdguard_lint.report.summary import Counts
from spmdguard_lint.report.write import FORMATS, write_findings, write_statistics, write_summary
from spmdguard_lint.source.discovery import NoSuchPath
from spmdguard_lint.source.reading import SourceFile

CLEAN, FOUND, FAILED = 0, 1, 2
_MAX_WIDTH = 130


def lint_command(argv: Sequence[str], *, analysis: Analysis | None = None) -> int:
    """Run ``spmdguard lint``; ``analysis`` stands in for the real one in tests of this shell."""
    options = _lint_parser().parse_args(argv)
    try:
        config = _config(options)
        if options.show_settings:
            return _show_settings(config)
        if options.fix or options.diff:
            return _fix(options, config, analysis)
        result = _run(options, config, analysis)
    except ConfigError as error:
        return _fail(str(error))
    except NoSuchPath as error:
        return _fail(f"no such file or directory: {error}")
    if options.output_format == "json" and not options.statistics:
        from spmdguard_lint.fixes.planning import with_fixes

        result = replace(result, findings=with_fixes(result.findings, result.sources))
    _report(result, options)
    return FOUND if result.findings and not options.exit_zero else CLEAN


def rule_command(argv: Sequence[str]) -> int:
    """Run ``spmdguard rule``."""
    from spmdguard_lint.report import rule_page
    from spmdguard_lint.rules import registry

    options = _rule_parser().parse_args(argv)
    style = _style(sys.stdout, options.no_color)
    if options.write_docs is not None:
        for path in rule_page.write_documents(registry.all_rules(), options.write_docs):
            print(path)
        return CLEAN
    if options.all or not options.code:
        print("\n".join(rule_page.table_lines(registry.all_rules(), style)))
        return CLEAN
    for text in options.code:
        codes = registry.codes_of(text)
        if not codes:
            return _fail(f"no rule is called `{text}`; `spmdguard rule --all` lists every rule")
        if merged := registry.merged_code(text):
            print(f"{registry.merge_note(merged)}.\n")
        for code in codes:
            if (info := registry.rule_for(code)) is not None:
                rule_page.print_page(info, style)
    return CLEAN


def _config(options: argparse.Namespace) -> Config:
    paths = [path for path in options.paths if path != "-"]
    if "-" in options.paths and options.stdin_filename:
        paths.append(options.stdin_filename)
    config = load_config(paths, file=options.config, isolated=options.isolated)
    config = with_options(config, vars(options))
    if config.merged:
        from spmdguard_lint.rules import registry

        for code in config.merged:
            print(f"spmdguard: note: {registry.merge_note(code)}", file=sys.stderr)
    return config


def _run(options: argparse.Namespace, config: Config, analysis: Analysis | None) -> LintResult:
    stdin = _standard_input(options)
    paths = [path for path in options.paths if path != "-"]
    cache = _cache(options, config)
    if not sys.stderr.isatty() or options.quiet:
        result = lint(paths, config, stdin=stdin, analysis=analysis, cache=cache)
    else:
        from spmdguard_lint.report.progress import ProgressBar

        with ProgressBar(colour=_colour(sys.stderr, options.no_color)) as progress:
            result = lint(paths, config, stdin=stdin, progress=progress, analysis=analysis, cache=cache)
    if cache is not None and cache.problem and not options.quiet:
        print(f"spmdguard: note: the results are not kept for the next run: {cache.problem}", file=sys.stderr)
    return result


def _cache(options: argparse.Namespace, config: Config) -> Cache | None:
    """Where results are kept: next to the settings, or in the working directory where there are none."""
    if options.no_cache:
        return None
    return Cache(options.cache_dir or config.root / FOLDER)


def _fix(options: argparse.Namespace, config: Config, analysis: Analysis | None) -> int:
    """``--fix`` and ``--diff``: fixed text of standard input goes to standard output, its report to the other."""
    from spmdguard_lint.fixes.applying import fix_project
    from spmdguard_lint.fixes.outcome import Outcome

    given = _Given(options, config, analysis)
    fixed = fix_project(given.lint, unsafe=options.unsafe_fixes)
    outcome = Outcome(fixed, options.diff, given.first_stdin())
    failures = outcome.deliver(sys.stdout)
    for text in failures:
        _fail(f"cannot write {text}")
    if options.diff:
        print(outcome.summary(), file=sys.stderr)
        code = FOUND if fixed.after and not options.exit_zero else CLEAN
        return FAILED if failures else code
    assert given.last is not None
    result = replace(given.last, findings=fixed.findings)
    stream = sys.stderr if "-" in options.paths else sys.stdout
    _report(result, options, note=outcome.summary(), refused=fixed.refused, stream=stream)
    if failures:
        return FAILED
    return FOUND if result.findings and not options.exit_zero else CLEAN


class _Given:
    """The run of a command line, again and again with other texts; standard input is read once."""

    def __init__(self, options: argparse.Namespace, config: Config, analysis: Analysis | None) -> None:
        self.options, self.config, self.analysis = options, config, analysis
        self.stdin = _standard_input(options)
        self.last: LintResult | None = None
        self.sources: Mapping[str, SourceFile] = {}

    def first_stdin(self) -> SourceFile | None:
        """Standard input as it came."""
        return self.sources.get(self.stdin.filename) if self.stdin is not None else None

    def lint(self, overlay: Mapping[str, SourceFile]) -> LintResult:
        paths = [path for path in self.options.paths if path != "-"]
        self.last = lint(paths, self.config, stdin=self.stdin, analysis=self.analysis, overlay=overlay)
        self.sources = self.sources or self.last.sources
        return self.last


def _standard_input(options: argparse.Namespace) -> StandardInput | None:
    if "-" not in options.paths:
        return None
    return StandardInput(sys.stdin.buffer.read(), options.stdin_filename or "-")


def _report(
    result: LintResult,
    options: argparse.Namespace,
    *,
    note: str = "",
    refused: tuple[Finding, ...] = (),
    stream: TextIO | None = None,
) -> None:
    stream = stream or sys.stdout
    style = _style(stream, options.no_color)
    findings = result.findings
    try:
        if options.statistics:
            write_statistics(findings, options.output_format, style, stream.write)
        else:
            write_findings(findings, result.sources, options.output_format, style, stream.write)
        if not options.quiet:
            if note and options.output_format in ("full", "concise"):
                stream.write(note + "\n")
            tried: Applicability | None = (
                ("unsafe" if options.unsafe_fixes else "safe") if options.fix else None
            )
            counts = Counts(result.num_files, result.num_suppressed, result.num_advice, tried, refused)
            write_summary(findings, counts, options.output_format, style, stream.write)
        stream.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _style(stream: TextIO, no_color: bool) -> Style:
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    if encoding != "utf8" and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    elif hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    width = 100
    if stream.isatty() or "COLUMNS" in os.environ:
        import shutil

        width = max(40, min(shutil.get_terminal_size((100, 24)).columns, _MAX_WIDTH))
    return Style(_colour(stream, no_color), encoding == "utf8", width)


def _colour(stream: TextIO, no_color: bool) -> bool:
    """Colour on a terminal; https://no-color.org and FORCE_COLOR are respected, the option wins."""
    if no_color or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _show_settings(config: Config) -> int:
    from dataclasses import fields

    print(f"# settings from {config.source or 'no file'}")
    for item in fields(config):
        if item.name not in ("source", "root", "merged"):
            print(f"{item.name.replace('_', '-')} = {getattr(config, item.name)!r}")
    return CLEAN


def _fail(text: str) -> int:
    print(f"spmdguard: error: {text}", file=sys.stderr)
    return FAILED


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _lint_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spmdguard lint",
        description="Find code in which ranks stop calling the same collectives in the same order.",
        epilog="exit codes: 0 nothing found, 1 something found, 2 the run could not be done as asked",
        allow_abbrev=False,
    )
    many: dict[str, Any] = {"action": "extend", "type": _listed, "metavar": "LIST"}
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="files and folders to lint, or - for standard input")
    add("--output-format", choices=FORMATS, default="full", help="how to print findings (default: full)")
    add("--select", help="codes, beginnings of codes, rule names or ALL, in place of the default", **many)
    add("--ignore", help="codes not to report", **many)
    add("--extend-select", help="codes to report besides", **many)
    add("--exclude", help="globs of files and folders to leave out besides", **many)
    add("--force-exclude", action="store_true", help="leave out excluded files even where named as PATH")
    add("--preview", action="store_true", help="also run rules that are not stable yet")
    add(
        "--min-certainty",
        choices=("definite", "likely", "possible"),
        help="report only what is at least this certain (default: likely)",
    )
    add("--stdin-filename", metavar="FILE", help="the name that standard input goes by")
    add("--statistics", action="store_true", help="print how often each rule was found")
    add("--exit-zero", action="store_true", help="exit 0 although something was found")
    add("--config", type=Path, metavar="FILE", help="read the settings from this TOML file")
    add("--isolated", action="store_true", help="read no settings file")
    add("--no-cache", action="store_true", help="neither use nor keep results of earlier runs")
    add("--cache-dir", type=Path, metavar="FOLDER", help=f"keep results here (default: {FOLDER})")
    add("--show-settings", action="store_true", help="print the settings that apply to PATH, and end")
    add("--no-color", action="store_true", help="no colours, even on a terminal")
    add("-q", "--quiet", action="store_true", help="print findings only: no summary, no progress bar")
    add("--fix", action="store_true", help="apply the safe fixes, and report what is left")
    add(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix or --diff: those that change behaviour as well",
    )
    add("--diff", action="store_true", help="show what --fix would change, and change nothing")
    return parser


def _rule_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spmdguard rule", description="Show a rule's page, or the list of rules.", allow_abbrev=False
    )
    parser.add_argument("code", nargs="*", metavar="CODE", help="a code such as SPG102, or a rule's name")
    parser.add_argument("--all", action="store_true", help="list every rule")
    parser.add_argument("--write-docs", type=Path, metavar="FOLDER", help="write all pages as Markdown files")
    parser.add_argument("--no-color", action="store_true", help="no colours, even on a terminal")
    return parser
