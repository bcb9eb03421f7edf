"""One process of a wrong launch: start the process group, guarded or bare, and say in one line how it ended.

    python worker.py guarded|bare DEADLINE_S

What follows are arguments of the script, which the handshake compares.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from importlib import import_module


def start(guarded: bool, deadline_s: float) -> None:
    if guarded:
        import spmdguard

        spmdguard.init_process_group("gloo", timeout=deadline_s, handshake_timeout=deadline_s)
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo", timeout=timedelta(seconds=deadline_s))
        dist.all_reduce(torch.ones(1))


def spawn(guarded: bool, deadline_s: float) -> None:
    """What a script does that starts its ranks itself, also where torchrun has started them."""
    import torch.multiprocessing

    torch.multiprocessing.spawn(become_rank, (guarded, deadline_s), nprocs=2)


def become_rank(local_rank: int, guarded: bool, deadline_s: float) -> None:
    os.environ.update(RANK=str(local_rank), LOCAL_RANK=str(local_rank), WORLD_SIZE="2")
    tell(guarded, deadline_s)


def tell(guarded: bool, deadline_s: float) -> None:
    """Write one line of JSON into the folder that ``FAULT_FOLDER`` names, and end without finalisation."""

    import_module("torch.distributed")  # seconds that no deadline counts
    started_s = time.monotonic()
    codes: list[str] = []
    text = "started"
    try:
        start(guarded, deadline_s)
    except Exception as error:
        codes = list(getattr(error, "codes", ()))
        text = str(error)
    found = {
        "pid": os.getpid(),
        "rank": os.environ.get("RANK"),
        "seconds": time.monotonic() - started_s,
        "text": text,
        "codes": codes,
        "failed": text != "started",
    }
    folder = os.environ["FAULT_FOLDER"]
    with open(os.path.join(folder, f"{os.getpid()}.part"), "w", encoding="utf-8") as file:
        json.dump(found, file)
    os.rename(os.path.join(folder, f"{os.getpid()}.part"), os.path.join(folder, f"{os.getpid()}.json"))
    time.sleep(float(os.environ.get("FAULT_STAY_S", "0.5")))  # a launcher ends the others when the first ends
    os._exit(int(found["failed"]))


if __name__ == "__main__":
    mode, deadline = sys.argv[1:3]
    if os.environ.get("FAULT_SPAWN") == "1":
        spawn(mode == "guarded", float(deadline))
    else:
        tell(mode == "guarded", float(deadline))
