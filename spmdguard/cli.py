"""The command ``spmdguard``: hands each command to the room that owns it, and imports nothing before it is asked."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple


class _Command(NamedTuple):
    """Where a command lives: ``module.function(arguments) -> exit code``, and its lines in the usage text."""

    module: str
    function: str
    usage: str
    help: str


_COMMANDS = {
    "env": _Command(
        "spmdguard.preflight.environment",
        "env_command",
        "env",
        "report what distributed training depends on here, and advise",
    ),
    "lint": _Command(
        "spmdguard_lint.cli",
        "lint_command",
        "lint PATH...",
        "find code in which ranks stop calling the same collectives in the same order",
    ),
    "adopt": _Command(
        "spmdguard_lint.adopt.command",
        "adopt_command",
        "adopt PATH...",
        "show how a training script looks in the guarded form",
    ),
    "preflight": _Command(
        "spmdguard.preflight.links",
        "preflight_command",
        "preflight",
        "on every rank, by torchrun: find the slow or failing rank, host or link before the run",
    ),
    "rule": _Command(
        "spmdguard_lint.cli",
        "rule_command",
        "rule CODE",
        "show a rule's page; `spmdguard rule --all` lists every rule",
    ),
    "demo": _Command(
        "spmdguard.demo.command",
        "demo_command",
        "demo",
        "watch a script hang and be explained, in about half a minute",
    ),
    "run": _Command(
        "spmdguard.launching.run_command",
        "run_command",
        "run SCRIPT ...",
        "run a training script under protection: stall reports, and one cause for all ranks",
    ),
    "triage": _Command(
        "spmdguard.triage.command",
        "triage_command",
        "triage LOG...",
        "say from the logs of a failed job which rank failed first, and why",
    ),
}


def _usage() -> str:
    lines = "\n".join(f"  {command.usage:<15} {command.help}" for command in _COMMANDS.values())
    return f"""\
usage: spmdguard COMMAND ...

Keep distributed PyTorch jobs from hanging.

commands:
{lines}

options:
  -h, --help      show this text; `spmdguard COMMAND --help` shows a command's options
  --version       show the version
"""


def command() -> int:
    """``main`` as a process of its own, which then ends.

    What ``lint`` leaves, millions of objects that refer to each other, is for the system to free at once: to search
    them for cycles and take them apart one by one at exit is a fifth of what linting a large project costs. A script
    that ``run`` has run in this process is finalised as ever.
    """
    try:
        return main()
    finally:
        if sys.argv[1:2] == ["lint"]:
            gc.freeze()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: this process's) and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else ""
    if name in ("-h", "--help", "help", ""):
        print(_usage(), end="", file=sys.stdout if name else sys.stderr)
        return 0 if name else 2
    if name in ("-V", "--version", "version"):
        from importlib.metadata import version

        print(f"spmdguard {version('spmdguard')}")
        return 0
    if name not in _COMMANDS:
        print(f"spmdguard: error: unknown command `{name}`\n\n{_usage()}", end="", file=sys.stderr)
        return 2
    try:
        return _run(_COMMANDS[name], arguments[1:])
    except KeyboardInterrupt:
        print("spmdguard: interrupted", file=sys.stderr)
        return 130
    except Exception:  # exit code 1 means "something was found", so a crash must not end with Python's 1
        import traceback

        traceback.print_exc()
        print("spmdguard: error: this is a bug in spmdguard; please report it", file=sys.stderr)
        return 2


def _run(command: _Command, arguments: list[str]) -> int:
    function: Callable[[list[str]], int] = getattr(import_module(command.module), command.function)
    return function(arguments)
