"""Log a mean per step to a file system that fails now and then."""
import functools
import time
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist


def patiently(times: int):
    """Try again after an OSError; give up with a warning."""

    def wrap(fn):
        @functools.wraps(fn)
        def again(*args, **kwargs):
            for attempt in range(times):
                try:
                    return fn(*args, **kwargs)
                except OSError as exc:
                    warnings.warn(f"attempt {attempt}: {exc}")
                    time.sleep(0.05)
            return None

        return again

    return wrap


@patiently(times=3)
def write(path: str, line: str) -> None:
    with open(path, "a") as f:
        f.write(line)


def report(step: int, loss: torch.Tensor) -> None:
    mean = loss.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    write(f"mean-{dist.get_rank()}.log", f"{step} {mean.item():.5f}\n")


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    gen = torch.Generator().manual_seed(dist.get_rank())
    for step in range(10):
        report(step, torch.rand(1, generator=gen))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
