import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard as sg


class Stopwatch:
    def __enter__(self):
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.begun
        return False


def dump(step: int, state: torch.Tensor) -> None:
    torch.save(state, f"state-{step}.pt")


def simulate(steps: int) -> None:
    state = torch.zeros(16)
    for step in range(steps):
        kick = torch.randn(16)
        dist.all_reduce(kick)
        state += kick
        if sg.is_main_process():
            sg.try_or_defer(dump, step, state)
        if sg.sync_should_stop(sg.has_deferred_error()):
            break


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    lead = sg.is_main_process()
    try:
        with Stopwatch() as watch:
            simulate(50)
        dist.barrier()
        dist.destroy_process_group()
        sg.raise_if_deferred_error()
        if lead:
            print(f"{watch.seconds:.1f} s")
    finally:
        sys.stdout.flush()
        sys.exit(0)


if __name__ == "__main__":
    main()
