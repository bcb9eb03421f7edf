"""``spmdguard run``: a script under protection in this process, or under a torchrun that it starts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from spmdguard.arguments import positive_number
from spmdguard.errors import LaunchFailed
from spmdguard.exitcodes import ExitCode
from spmdguard.format import without_first_frames
from spmdguard.group.exit import UnfinalisedExit, bound_interpreter_exit, exit_code_of
from spmdguard.group.torch_access import count_by_torchrun, lacks_torch
from spmdguard.launch import handshake
from spmdguard.launching.script import find_missing, prepare_module, prepare_script
from spmdguard.primary import was_written, write_primary_error
from spmdguard.watch.settings import make_settings
from spmdguard.watch.starting import Running, start

_EPILOG = """\
exit codes: those of the script; 1 where it raised; 74 where another rank failed or died first and this one
waited for it; 75 where the run stood still for longer than its limit; 2 where nothing could be started.
Under torchrun the code of torchrun; with --nproc 130 after Ctrl-C, and 143 after SIGTERM.
"""
_EXIT_TIMEOUT_S = 30.0
_seconds = partial(positive_number, needed="a positive number of seconds")


def run_command(arguments: Sequence[str]) -> int:
    """The command; ``arguments`` without its name."""
    options = _parse(arguments)
    wrong = find_missing(options.script, module=options.module)
    if wrong:
        return _refuse(wrong)
    if options.nproc is not None:
        return _start_torchrun(options)
    return _run_here(options)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spmdguard run",
        description="Run a training script under protection: stall reports, and one cause for all ranks.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # else the script's own options can be ambiguous with these
        usage="%(prog)s [options] script.py ...  |  [options] -m module ...",
    )
    parser.add_argument("--nproc", metavar="N", help="start torchrun with N processes on this host")
    parser.add_argument(
        "--stall-limit",
        metavar="SECONDS",
        type=_seconds,
        help="how long a rank may wait in communication (default: learned from the run)",
    )
    parser.add_argument(
        "--launch-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=300.0,
        help="how long to wait for ranks that have not come when the script starts (default: 300)",
    )
    parser.add_argument(
        "--report-dir", metavar="FOLDER", type=Path, help="write stall reports there: text, JSON, HTML, trace"
    )
    parser.add_argument(
        "--on-stall",
        choices=("abort", "report"),
        default="abort",
        help="whether all ranks of a stalled run end (default), or it is only reported",
    )
    parser.add_argument(
        "--no-handshake", action="store_true", help="do not meet the other processes before the script starts"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="script names a module")
    parser.add_argument("script", help="the script, or with -m the module")
    own = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")
    own.required = False  # else the message that there is no script asks for these too
    return parser.parse_args(list(arguments))


def _refuse(wrong: str) -> int:
    print(f"spmdguard run: error: {wrong}", file=sys.stderr)
    return 2


def _start_torchrun(options: argparse.Namespace) -> int:
    """Become torchrun with this command under it."""
    if lacks_torch("run"):
        return 2
    try:
        num_processes = _count_processes(options.nproc)
    except ValueError as wrong:
        return _refuse(f"--nproc: {wrong}")
    own = ["--on-stall", options.on_stall, *(["--no-handshake"] if options.no_handshake else [])]
    if options.stall_limit is not None:
        own += ["--stall-limit", str(options.stall_limit)]
    own += ["--launch-timeout", str(options.launch_timeout)]
    if options.report_dir is not None:
        own += ["--report-dir", str(options.report_dir.absolute())]
    if options.module:
        own.append("-m")
    command = [
        sys.executable,
        "-m",
        "spmdguard.launching.torchrun",
        "--standalone",
        "--nproc-per-node",
        str(num_processes),
    ]
    command += ["-m", "--", "spmdguard", "run", *own, options.script, *options.arguments]
    sys.stdout.flush()
    os.execv(sys.executable, command)


def _count_processes(text: str) -> int:
    """``--nproc``: a number, or a word that torchrun knows, such as ``gpu``.

    Raises:
        ValueError: it is neither, or there is no such device.
    """
    if not text.lstrip("-").isdecimal():
        try:
            return count_by_torchrun(text)
        except ValueError as wrong:
            raise ValueError(f"a number, cpu, gpu or auto is needed, got {text!r} ({wrong})") from None
    if int(text) < 1:
        raise ValueError(f"at least one process is needed, got {text!r}")
    return int(text)


def _run_here(options: argparse.Namespace) -> int:
    unfinalised = UnfinalisedExit()
    prepare = prepare_module if options.module else prepare_script
    run = prepare(options.script, options.arguments)
    meets = False
    if not options.no_handshake:
        try:
            launched = handshake(options.launch_timeout)
        except LaunchFailed as wrong:
            write_primary_error(wrong)
            return int(ExitCode.FAILED)
        meets = launched.store is not None
        if meets:
            sys.stderr.write(f"spmdguard: {launched.identity.describe()} of {launched.world_size}\n")
    running = start(
        make_settings(
            options.stall_limit, options.report_dir, options.on_stall == "abort", options.launch_timeout
        )
    )
    if meets:
        running.wait_until_joined()
    owner = os.getpid()
    try:
        run()
    except BaseException as exc:
        if os.getpid() != owner:  # a forked child came back up here
            raise
        failure: BaseException | None = exc.with_traceback(_of_script(exc.__traceback__))
    else:
        failure = None
        if os.getpid() != owner:
            return 0
    code = _end(running, failure)
    if code != 0:
        unfinalised.code = code
    return code


def _of_script(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of the script; none where it could not even be read."""
    found = without_first_frames(traceback, _calls_script)
    return None if found is not None and _calls_script(found.tb_frame.f_code.co_filename) else found


def _calls_script(name: str) -> bool:
    """Whether a file only runs the script."""
    return name.startswith((str(Path(__file__).parent), "<frozen")) or name.endswith("runpy.py")


def _end(running: Running, exc: BaseException | None) -> int:
    """Tell the watch how the script ended, and give the exit code."""
    code = exit_code_of(exc)
    if exc is None or code == 0:
        running.ended(exc, code=code)
        running.finish()
        return code
    if isinstance(exc, SystemExit) and isinstance(exc.code, str):
        sys.stderr.write(f"{exc.code}\n")
    if not was_written(exc):
        write_primary_error(exc)
    victim = running.is_victim
    running.finish(failing=True)
    bound_interpreter_exit(_EXIT_TIMEOUT_S)
    return int(ExitCode.PEER_FAILED) if victim else code
