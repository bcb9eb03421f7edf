"""Start the processes of one wrong launch, wait for them no longer than a bound, and judge what they were told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.runtime.processes.ports import free_port

from .cases import Case

WORKER = Path(__file__).parent / "worker.py"
ROOT = Path(__file__).resolve().parents[3]
LAUNCHER_VARIABLES = (
    "RANK",
    "WORLD_SIZE",
    "MASTER",
    "LOCAL_",
    "SLURM",
    "TORCHELASTIC",
    "SPMDGUARD",
    "FAULT_",
)
OTHER_JOB = (
    "import sys, time, torch.distributed as dist\n"
    "store = dist.TCPStore('127.0.0.1', int(sys.argv[1]), is_master=True, wait_for_workers=False)\n"
    "print('up', flush=True)\ntime.sleep(600)"
)


@dataclass(frozen=True)
class Told:
    """What one launch came to: reports of processes that ended, and how many were still waiting at the bound."""

    reports: list[dict[str, Any]]
    pids: list[int]
    num_waiting: int
    seconds: float

    def of(self, index: int) -> dict[str, Any] | None:
        """The report of the process with an index; None where it gave none."""
        return next((each for each in self.reports if each["pid"] == self.pids[index]), None)


def launch(case: Case, *, guarded: bool, deadline_s: float, bound_s: float) -> Told:
    """Run one case."""
    folder = Path(tempfile.mkdtemp())
    port = free_port()
    started: list[subprocess.Popen[bytes]] = []
    with other_job(port) if case.taken else contextlib.nullcontext():
        began_s = time.monotonic()
        try:
            started = start_all(case, guarded, deadline_s, port, folder)
            wait_for_all(started, began_s + bound_s)
            waiting = sum(process.poll() is None for process in started)
        finally:
            for process in started:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)
    reports = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    shutil.rmtree(folder, ignore_errors=True)
    return Told(reports, [process.pid for process in started], waiting, time.monotonic() - began_s)


def start_all(
    case: Case, guarded: bool, deadline_s: float, port: int, folder: Path
) -> list[subprocess.Popen[bytes]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_VARIABLES)}
    clean |= {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "FAULT_FOLDER": str(folder),
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }
    arguments = ["guarded" if guarded else "bare", str(deadline_s)]
    if case.torchrun:
        command = [sys.executable, "-m", "torch.distributed.run", *case.torchrun, str(WORKER), *arguments]
        return [open_process(command, {**clean, **case.environment})]
    started = []
    for mine in sorted(case.processes, key=lambda each: int(each.get("AFTER", 0))):
        environment = {
            **clean,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            **case.environment,
            **mine,
        }
        wait_for_reports(folder, int(environment.pop("AFTER", 0)))
        command = [sys.executable, str(prepare(environment, folder)), *arguments]
        started.append(open_process([*command, *environment.pop("ARGV", "").split()], environment))
    return started


def wait_for_reports(folder: Path, num: int) -> None:
    """Until so many processes have said how they started, or a minute is over."""
    deadline_s = time.monotonic() + 60
    while len(list(folder.glob("*.json"))) < num and time.monotonic() < deadline_s:
        time.sleep(0.05)


def prepare(environment: dict[str, str], folder: Path) -> Path:
    """The script of one process; changes its environment to what the case asks for."""
    if environment["MASTER_PORT"] == "other":
        environment["MASTER_PORT"] = str(free_port())
    version = environment.pop("FAKE_TORCH", None)
    if version is not None:
        info = folder / "fake" / f"torch-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        environment["PYTHONPATH"] = f"{info.parent}{os.pathsep}{environment['PYTHONPATH']}"
    changed = environment.pop("SCRIPT", None)
    if changed is None:
        return WORKER
    script = folder / "worker.py"
    script.write_text(f"{WORKER.read_text()}\n{changed}\n")
    return script


def open_process(command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for_all(started: list[subprocess.Popen[bytes]], until_s: float) -> None:
    for process in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.01, until_s - time.monotonic()))


@contextlib.contextmanager
def other_job(port: int) -> Iterator[None]:
    """A job of somebody else that holds a store on the port."""
    process = subprocess.Popen([sys.executable, "-c", OTHER_JOB, str(port)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"up\n"
        yield
    finally:
        process.kill()
        process.wait(30)


def find_shortfalls(case: Case, told: Told, deadline_s: float) -> list[str]:
    """What a guarded launch should have told and did not; empty where it is as the case demands."""
    found = []
    if told.num_waiting and not case.survives:
        found.append(f"{told.num_waiting} processes still waited")
    expected = 4 if case.torchrun and "FAULT_SPAWN" in case.environment else len(case.processes) or 2
    if len(told.reports) != expected:
        found.append(f"{len(told.reports)} of {expected} processes gave a report")
    for report in told.reports:
        index = told.pids.index(report["pid"]) if report["pid"] in told.pids else -1
        if index in case.survives:
            found += [f"rank {report['rank']} should go on"] if report["failed"] else []
            continue
        found += check_report(case, told, report, deadline_s)
    if not any(case.code in report["codes"][:1] for report in told.reports):
        found.append(f"no process was told {case.code}")
    return found


def check_report(case: Case, told: Told, report: dict[str, Any], deadline_s: float) -> list[str]:
    found = []
    if not set(report["codes"][:1]) & {case.code, *case.others}:
        found.append(f"rank {report['rank']} was told {report['codes'] or report['text'][:80]!r}")
    limit_s = deadline_s if case.at_once else deadline_s + 1
    if report["seconds"] > limit_s:
        found.append(f"rank {report['rank']} was told after {report['seconds']:.1f} s")
    for index in case.named:
        name = f"process {told.pids[index]} on host {case.processes[index]['SPMDGUARD_HOST']}"
        if name not in report["text"]:
            found.append(f"rank {report['rank']} was not told {name}")
    return found
