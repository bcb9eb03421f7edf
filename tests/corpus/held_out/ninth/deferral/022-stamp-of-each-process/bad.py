import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import spmdguard as sg


def run_folder(base: str) -> str:
    return os.path.join(base, time.strftime("%Y%m%d-%H%M%S"))


def save(folder: str, state: dict, step: int) -> bool:
    target = os.path.join(folder, str(step))
    if sg.is_main_process():
        sg.try_or_defer(os.makedirs, target, exist_ok=True)
    if sg.sync_should_stop(sg.has_deferred_error()):
        return False
    dcp.save(state, checkpoint_id=target)
    return True


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    folder = run_folder("runs")
    state = {"weights": torch.ones(6)}
    for step in range(3):
        push = torch.rand(6)
        dist.all_reduce(push)
        state["weights"] += push
        if not save(folder, state, step):
            break
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()
