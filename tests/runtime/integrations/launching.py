"""Run an example under torchrun, as a user does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass

from ..processes.ports import free_port
from ..processes.zygote import ROOT


@dataclass(frozen=True)
class Launched:
    """What two ranks of an example said."""

    code: int
    out: str

    @property
    def left(self) -> list[tuple[int, int, str]]:
        """Rank, last step and reason of each rank, as the example prints them."""
        line = r"rank (\d) left after step (\d+): (.*?)(?:; saved .*?)?(?=rank \d left after|$)"  # two may share a line
        found = re.findall(line, self.out, re.MULTILINE)
        return sorted((int(rank), int(step), reason) for rank, step, reason in found)


def launch(example: str, *arguments: str) -> Launched:
    """Two ranks of ``docs/examples/EXAMPLE``; a hang is killed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--master-port", str(free_port()), f"docs/examples/{example}", *arguments),
        ],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher ends its ranks, which are in sessions of their own
        out, _ = process.communicate(timeout=60)
        out += "\nHUNG"
    return Launched(process.returncode, out)
