"""The command ``spmdguard triage``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from spmdguard.triage.events import Collector, Evidence
from spmdguard.triage.flight import dump_event, is_dump, read_dump
from spmdguard.triage.lines import UnreadableLog, find_logs, lines_of, read_lines
from spmdguard.triage.linting import lint_findings
from spmdguard.triage.patterns import PatternError, Patterns, load
from spmdguard.triage.report import to_json, to_text
from spmdguard.triage.verdict import Verdict, judge

_DESCRIPTION = """\
Read what is left of a failed distributed job and say which rank failed first, with which error at which line, which
messages are only consequences, and what to check next. Reads one log or many, folders (torchrun's --log-dir), gzip,
and `-` for standard input; knows the prefixes of torchrun, srun --label, mpirun, Ray, pdsh, Kubernetes and Docker.
"""


def triage_command(arguments: Sequence[str]) -> int:
    """Run ``spmdguard triage``: 0 where no failure is found, 1 where one is, 2 where nothing could be read."""
    parser = argparse.ArgumentParser(
        prog="spmdguard triage",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a log, a folder of logs, or - for standard input"
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument(
        "--patterns",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="more patterns (TOML), tried first",
    )
    parser.add_argument(
        "--source",
        action="append",
        type=Path,
        default=[],
        metavar="FOLDER",
        help="where the job's source lies, for the linter",
    )
    parser.add_argument("--no-lint", action="store_true", help="do not ask the linter")
    options = parser.parse_args(list(arguments))
    try:
        patterns = load(options.patterns)
        evidence, num_logs, unread = collect(options.logs, patterns)
    except (PatternError, UnreadableLog) as error:
        print(f"spmdguard: error: {error}", file=sys.stderr)
        return 2
    for log in unread:
        print(f"spmdguard: warning: cannot read {log}", file=sys.stderr)
    if unread and num_logs == len(unread):
        return 2
    if not evidence.num_lines and not evidence.events:
        print(f"spmdguard: error: {_describe_nothing(options.logs, num_logs)}", file=sys.stderr)
        return 2
    verdict = judge(evidence)
    ask = not options.no_lint and verdict.kind != "nothing"
    lint = lint_findings(verdict, options.source or [Path.cwd()]) if ask else []
    _print(verdict, patterns, lint, num_logs, options.json)
    return 0 if verdict.kind == "nothing" else 1


def _describe_nothing(logs: Sequence[str], num_logs: int) -> str:
    named = ", ".join(logs[:3]) + (" ..." if len(logs) > 3 else "")
    if num_logs == 0:
        return f"no log found in {named}; name the files"
    return f"nothing to read: {named} {'holds' if len(logs) == 1 else 'hold'} no text"


def collect(logs: Sequence[str], patterns: Patterns) -> tuple[Evidence, int, list[UnreadableLog]]:
    """Read every log; those that cannot be read are handed back, a path that does not exist is an error."""
    collector = Collector(patterns)
    unread: list[UnreadableLog] = []
    files: list[Path] = []
    for log in logs:
        if log == "-":
            collector.take(lines_of(sys.stdin.buffer, "standard input"))
        else:
            files.extend(find_logs([Path(log)]))
    for file in dict.fromkeys(files):
        try:
            if is_dump(file):
                event = dump_event(file, read_dump(file))
                if event is not None:
                    collector.add(event)
            else:
                collector.take(read_lines(file))
        except UnreadableLog as error:
            unread.append(error)
    return collector.evidence(), len(files) + ("-" in logs), unread


def _print(verdict: Verdict, patterns: Patterns, lint: Sequence[str], num_logs: int, as_json: bool) -> None:
    if as_json:
        print(json.dumps(to_json(verdict, patterns.checks, lint), indent=2))
    else:
        print(to_text(verdict, patterns.checks, lint, num_logs), end="")
