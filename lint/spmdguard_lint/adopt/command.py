"""The command ``spmdguard adopt``: the guarded form of a training script, as a difference to review."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..config import Config, ConfigError, load_config
from ..engine import LintResult, lint
from ..source.discovery import NoSuchPath
from ..source.reading import SourceFile

if TYPE_CHECKING:
    from .adopting import Adopted

DONE, LEFT, FAILED = 0, 1, 2


def adopt_command(argv: Sequence[str]) -> int:
    """Run ``spmdguard adopt``."""
    options = _parser().parse_args(argv)
    try:
        config = load_config(options.paths, file=None, isolated=options.isolated)
        return _adopt(options, config)
    except ConfigError as error:
        return _fail(str(error))
    except NoSuchPath as error:
        return _fail(f"no such file or directory: {error}")


def _adopt(options: argparse.Namespace, config: Config) -> int:
    from ..fixes.script import CannotEdit
    from ..fixes.showing import difference
    from ..fixes.writing import CannotWrite, write_fixed
    from .adopting import adopt

    def lint_files(overlay: Mapping[str, SourceFile]) -> LintResult:
        return lint(options.paths, config, overlay=overlay)

    try:
        adopted = adopt(lint_files, config)
    except CannotEdit as error:
        return _fail(f"cannot adopt {', '.join(options.paths)}: {error}")
    failed = False
    changed = [n for n, after in adopted.after.items() if after.content != adopted.before[n].content]
    for name in sorted(changed):
        before, after = adopted.before[name], adopted.after[name]
        if not options.write:
            sys.stdout.writelines(difference(before, after))
            continue
        try:
            write_fixed(before, after)
        except CannotWrite as error:
            failed = bool(_fail(f"cannot write {error}"))
    for line in _said(adopted, changed=bool(changed), written=options.write):
        print(line, file=sys.stderr)
    if failed:
        return FAILED
    return LEFT if adopted.findings else DONE


def _said(adopted: Adopted, *, changed: bool, written: bool) -> Iterator[str]:
    """What was done, what to do, what is left; with the rows of the files as they are now."""
    done = adopted.notes if changed else []
    if not adopted.has_loop:
        own = " of the program's own" if adopted.remarks else ""
        yield f"no training loop{own} was found: nothing to {'rewrite' if adopted.remarks else 'adopt'}"
    elif not changed:
        yield "nothing to rewrite"
    for note in (*done, *adopted.remarks, *adopted.left()):
        before, after = adopted.before[note.filename], adopted.after[note.filename]
        yield str(note.moved(before, after) if written else note)


def _fail(text: str) -> int:
    print(f"spmdguard: error: {text}", file=sys.stderr)
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spmdguard adopt",
        description="Show how a training script looks in the guarded form: an agreement to stop at the end of each "
        "step, @collective and @rank_local, and the order of teardown.",
        epilog="exit codes: 0 done, 1 done but the linter finds something in the result, 2 it could not be done",
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="the files of the training program")
    parser.add_argument(
        "--write", action="store_true", help="change the files instead of showing a difference"
    )
    parser.add_argument("--isolated", action="store_true", help="read no settings file")
    return parser
