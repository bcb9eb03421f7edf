"""The command ``spmdguard``: hands each command to the half that owns it, and imports nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_USAGE = """\
usage: spmdguard COMMAND ...

Keep distributed PyTorch jobs from hanging.

commands:
  lint PATH...    find code in which ranks stop calling the same collectives in the same order
  rule CODE       show a rule's page; `spmdguard rule --all` lists every rule

options:
  -h, --help      show this text; `spmdguard COMMAND --help` shows a command's options
  --version       show the version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: this process's) and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments[0] if arguments else ""
    if command in ("-h", "--help", "help", ""):
        print(_USAGE, end="", file=sys.stdout if command else sys.stderr)
        return 0 if command else 2
    if command in ("-V", "--version", "version"):
        from importlib.metadata import version

        print(f"spmdguard {version('spmdguard')}")
        return 0
    try:
        return _run(command, arguments[1:])
    except KeyboardInterrupt:
        print("spmdguard: interrupted", file=sys.stderr)
        return 130
    except Exception:  # exit code 1 means "something was found", so a crash must not end with Python's 1
        import traceback

        traceback.print_exc()
        print("spmdguard: error: this is a bug in spmdguard; please report it", file=sys.stderr)
        return 2


def _run(command: str, arguments: list[str]) -> int:
    if command == "lint":
        from spmdguard_lint.cli import lint_command

        return lint_command(arguments)
    if command == "rule":
        from spmdguard_lint.cli import rule_command

        return rule_command(arguments)
    print(f"spmdguard: error: unknown command `{command}`\n\n{_USAGE}", end="", file=sys.stderr)
    return 2
