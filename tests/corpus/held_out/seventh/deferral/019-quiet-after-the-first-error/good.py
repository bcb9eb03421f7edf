"""Every process keeps a log of its own; after a first failure it stops trying to write."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, sync_should_stop, try_or_defer


def append(path: str, text: str) -> None:
    with open(path, "a") as f:
        f.write(text + "\n")


def note(step: int, values: torch.Tensor) -> None:
    if has_deferred_error():
        return
    for number, value in enumerate(values.tolist()):
        if has_deferred_error():
            break
        try_or_defer(append, f"values-{dist.get_rank()}-{number}.log", f"{step} {value:.5f}")


def spread(rounds: int, check_every: int) -> torch.Tensor:
    values = torch.rand(3, generator=torch.Generator().manual_seed(60 + dist.get_rank()))
    for step in range(rounds):
        mean = values.clone()
        dist.all_reduce(mean)
        values = 0.7 * values + 0.3 * mean / dist.get_world_size()
        note(step, values)
        if step % check_every == check_every - 1 and sync_should_stop(has_deferred_error()):
            break
    return values


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    values = spread(rounds=40, check_every=4)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(values.tolist())


if __name__ == "__main__":
    main()
