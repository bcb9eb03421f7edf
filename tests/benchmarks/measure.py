"""What the benchmarks share: CPU time and memory of whole processes, packages to measure on, small tables.

Times are CPU seconds (user + system) of a process and all the children it waited for, so that neither other
load on the machine nor worker processes flatter a tool.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PACKAGES = ("accelerate", "pytorch-lightning")


@dataclass(frozen=True)
class Run:
    """One process: what it cost, how it ended, what it said."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    exit_code: int
    out: str
    err: str


def run(command: Sequence[str | Path], *, timeout_s: float, cwd: str | Path | None = None) -> Run:
    """Run a command to its end; a timeout kills it, and the exit code is then -9.

    The child may keep compiled bytecode, as every installed package does; otherwise a checkout, whose files are
    compiled anew in each process, would be compared with packages that were compiled once.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command], stdout=out, stderr=err, cwd=cwd, env=environment
        )
        status, usage = _wait(process, started + timeout_s)
        wall_s = time.perf_counter() - started
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    cpu_s = usage.ru_utime + usage.ru_stime
    peak_mb = usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    return Run(cpu_s, wall_s, peak_mb, os.waitstatus_to_exitcode(status), *texts)


def _wait(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, object]:
    import resource  # absent on Windows, where these benchmarks do not run

    usage: resource.struct_rusage
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return status, usage
        if time.perf_counter() > deadline:
            process.kill()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return status, usage
        time.sleep(0.002)


def linter() -> list[str]:
    """The installed ``spmdguard`` of the interpreter that runs the benchmark."""
    script = Path(sys.executable).with_name("spmdguard")
    if not script.exists():
        raise SystemExit(f"{script} does not exist: install the project into this interpreter first")
    return [str(script)]


def add_package_arguments(parser: argparse.ArgumentParser, default: Sequence[str] = DEFAULT_PACKAGES) -> None:
    """The two ways to name packages."""
    parser.add_argument("folders", nargs="*", type=Path, help="folders of unpacked packages")
    parser.add_argument(
        "--download",
        nargs="*",
        metavar="NAME[==VERSION]",
        help=f"fetch these wheels instead (without names: {' '.join(default)})",
    )
    parser.set_defaults(default_packages=tuple(default))


def packages(args: argparse.Namespace, stack: ExitStack) -> list[Path]:
    """The folders to measure on; downloads live as long as ``stack``."""
    if args.folders:
        return list(args.folders)
    if args.download is None:
        raise SystemExit("name folders, or use --download")
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    return [download(name, scratch) for name in args.download or args.default_packages]


def download(requirement: str, scratch: Path) -> Path:
    """Fetch one wheel from the package index, without what it depends on, and unpack it."""
    folder = scratch / requirement.partition("==")[0].replace("-", "_")
    folder.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*command, "--dest", str(folder), requirement], check=True, timeout=600)
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        wheel.unlink()
    return folder


def python_files(folder: Path) -> list[Path]:
    """All Python files below a folder, in a fixed order."""
    return sorted(path for path in folder.rglob("*.py") if path.is_file())


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *[[_cell(value) for value in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
