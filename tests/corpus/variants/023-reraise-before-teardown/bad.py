"""Average readings, keep a log next to every process."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop


def measure(rounds):
    level = torch.zeros(1)
    for index in range(rounds):
        reading = torch.rand(1)
        dist.all_reduce(reading)
        level = 0.9 * level + 0.1 * reading / dist.get_world_size()
        with deferring("log"):
            with open(f"readings-{dist.get_rank()}.log", "a") as log:
                log.write(f"{index} {level.item():.4f}\n")
        if sync_should_stop(has_deferred_error()):
            break
    return level


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    level = measure(20)
    raise_if_deferred_error()
    dist.barrier()
    dist.destroy_process_group()
    print(level.item())


if __name__ == "__main__":
    main()
