import contextlib
from datetime import timedelta

import torch
import torch.distributed as dist


def work():
    total = torch.zeros(3)
    for _ in range(5):
        part = torch.rand(3)
        dist.all_reduce(part)
        if not part.isfinite().all():
            raise FloatingPointError("sum is not finite")
        total += part
    return total


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    lead = dist.get_rank() == 0
    try:
        total = work()
    except BaseException:
        with contextlib.suppress(Exception):
            dist.destroy_process_group()
        raise
    dist.barrier()
    dist.destroy_process_group()
    if lead:
        print(total.tolist())


if __name__ == "__main__":
    main()
