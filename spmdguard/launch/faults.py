"""What can be wrong with a launch: each fault's code, what was seen, and what to do about its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spmdguard.format import escape_text

__all__ = ["ADVICE", "ALLOWED_TO_DIFFER", "MAX_FAULTS", "Fault", "read_fault"]

MAX_FAULTS = 20
_MAX_TITLE = 300
_MAX_SAW = 1500

ADVICE: Mapping[str, str] = {
    "missing-rank": "look at the log of the missing process; start as many processes as WORLD_SIZE says",
    "duplicate-rank": "give every process its own RANK; where two launches met, give each its own MASTER_PORT",
    "launched-twice": "end the other launch, or give this one another MASTER_PORT",
    "world-size-differs": "give every launcher the same --nnodes and --nproc-per-node",
    "surplus-process": "start as many processes as WORLD_SIZE says; give another job its own MASTER_PORT",
    "bad-variable": "let torchrun set RANK, LOCAL_RANK and WORLD_SIZE, or export numbers",
    "rank-too-large": "ranks count from 0 to WORLD_SIZE - 1",
    "local-rank-beyond-devices": "start one process per device, or make more devices visible",
    "two-launchers": "use one launcher: srun with --ntasks-per-node=1 when it starts torchrun, or srun alone",
    "spawned-under-torchrun": "start the script with python, or remove its own spawn and let torchrun start every rank",
    "address-unresolvable": "set MASTER_ADDR to a name or address that this host can resolve",
    "address-elsewhere": "set MASTER_ADDR to an address of the host on which rank 0 runs",
    "store-unreachable": "give every process the MASTER_ADDR and MASTER_PORT on which rank 0 listens",
    "port-differs": "give every process the same MASTER_ADDR and MASTER_PORT",
    "port-taken": "end that process, or choose another MASTER_PORT (torchrun: --rdzv-endpoint=HOST:0)",
    "jobs-differ": "give each job its own MASTER_PORT",
    "versions-differ": "install the same versions on every host, or allow it: SPMDGUARD_ALLOW=versions",
    "script-differs": "copy the same script to every host, or allow it: SPMDGUARD_ALLOW=script",
    "arguments-differ": "give every rank the same arguments, or allow it: SPMDGUARD_ALLOW=arguments",
    "environment-differs": "export the same value on every host, or allow it: SPMDGUARD_ALLOW=environment",
    "unreadable-record": "look which program writes to this port",
    "no-verdict": "look for a process of this job that ended or was stopped during start-up",
    "wrong-sum": "check links and devices of the ranks named with `spmdguard preflight`",
}
ALLOWED_TO_DIFFER = ("versions", "script", "arguments", "environment")
_UNKNOWN = "read the texts above"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: a code of ``ADVICE``, one line that says what, and what was seen where."""

    code: str
    title: str
    saw: str = ""

    @property
    def advice(self) -> str:
        """What to do about faults of this kind."""
        return ADVICE.get(self.code, _UNKNOWN)

    def to_data(self) -> dict[str, str]:
        """For the store, with capped texts."""
        return {"code": self.code, "title": self.title[:_MAX_TITLE], "saw": self.saw[:_MAX_SAW]}

    def to_line(self) -> str:
        """For a record of its process: ``"code: title"``."""
        return f"{self.code}: {self.title}"


def read_fault(data: Any) -> Fault:
    """A fault that another process wrote; ``ValueError`` where it is none."""
    if not isinstance(data, dict) or not all(
        isinstance(data.get(name), str) for name in ("code", "title", "saw")
    ):
        raise ValueError("a fault has another form than expected")
    code = data["code"] if data["code"] in ADVICE else escape_text(data["code"], 40)
    return Fault(code, escape_text(data["title"], _MAX_TITLE), escape_text(data["saw"], _MAX_SAW))


def read_line(line: str) -> Fault:
    """The fault in a line of ``Fault.to_line``."""
    code, _, title = line.partition(": ")
    return Fault(code, title) if code in ADVICE else Fault("bad-variable", line)
