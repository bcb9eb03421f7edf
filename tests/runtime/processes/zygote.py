"""The test's side: start the warm process once, ask it for ranks, read what they left.

Importing torch costs seconds and a scenario milliseconds, so ranks are forked from a process that has
imported torch and started no thread. Each rank is a process of its own with its own group, streams and exit.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_START_TIMEOUT_S = 120.0
_GRACE_S = 30.0


@dataclass(frozen=True)
class Ended:
    """How one rank ended: exit code (negative: signal), None where it had to be killed."""

    rank: int
    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def clean_code(self) -> int | None:
        """The exit code, with gloo's abort at interpreter exit after all work read as 0."""
        return 0 if self.aborted_at_exit and "Traceback" not in self.err else self.code

    @property
    def aborted_at_exit(self) -> bool:
        """Whether gloo aborted the process at interpreter exit."""
        return self.code == -6

    @property
    def failed(self) -> bool:
        """Whether it ended by itself, but not well."""
        return self.clean_code not in (0, None)


@dataclass(frozen=True)
class Ranks:
    """What all ranks of a scenario left."""

    ranks: list[Ended]
    seconds: float
    num_left_over: int
    err: str = ""
    started_s: float = 0.0
    """When the ranks were started, by ``time.monotonic()``; their own ends count from it."""

    def __getitem__(self, rank: int) -> Ended:
        return self.ranks[rank]

    @property
    def codes(self) -> list[int | None]:
        return [ended.clean_code for ended in self.ranks]

    @property
    def hung(self) -> list[int]:
        """Ranks that had to be killed at the timeout."""
        return [ended.rank for ended in self.ranks if ended.code is None]

    def report(self) -> str:
        """Everything, for an assertion's message."""
        lines = [f"after {self.seconds:.1f} s, {self.num_left_over} left over", self.err]
        for ended in self.ranks:
            lines.append(f"--- rank {ended.rank}: code {ended.code} after {ended.seconds:.1f} s")
            lines += [ended.out, ended.err]
        return "\n".join(lines)


def patience() -> float:
    """How much longer a busy machine may take; a bound is meant for one that has nothing else to do."""
    return min(6.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


class Zygote:
    """The warm process."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "tests")}
        environment.pop("TORCHELASTIC_ERROR_FILE", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "runtime.processes.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
        )
        self._read(_START_TIMEOUT_S)

    def run(
        self,
        scenario: str,
        *,
        ranks: int,
        timeout_s: float = 30.0,
        env: dict[str, str] | None = None,
        folder: Path | None = None,
        one_stderr: bool = False,
        agent_store: bool = True,
        **arguments: Any,
    ) -> Ranks:
        """Fork ``ranks`` processes that call ``scenario`` (``module:function`` below ``scenarios``).

        The store lives in a process of its own, as under torchrun, or in rank 0 without ``agent_store``.
        With ``one_stderr`` all ranks write to the same stderr, as under torchrun: ``Ranks.err``, in order.
        """
        timeout_s *= patience()
        request = {
            "scenario": scenario,
            "ranks": ranks,
            "timeout_s": timeout_s,
            "env": env or {},
            "folder": None if folder is None else str(folder),
            "one_stderr": one_stderr,
            "agent_store": agent_store,
            "arguments": arguments,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._read(timeout_s + _GRACE_S))
        return Ranks(
            [Ended(**each) for each in answer["ranks"]],
            answer["seconds"],
            answer["num_left_over"],
            answer["err"],
            answer["started_s"],
        )

    def _read(self, timeout_s: float) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], timeout_s)
        if not ready:
            self.close()
            raise TimeoutError(f"the fork server did not answer within {timeout_s:g} s")
        line = stdout.readline()
        if not line:
            raise RuntimeError("the fork server ended")
        return line

    def close(self) -> None:
        """End the warm process."""
        self._process.kill()
        self._process.wait(timeout=10)
