from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferred_error, raise_if_deferred_error, sync_should_stop, try_or_defer


@dataclass
class Options:
    folder: str = "out"
    every: int = 5
    rounds: int = 60


def dump(options: Options, index: int, field: torch.Tensor) -> None:
    torch.save(field, f"{options.folder}/{dist.get_rank()}-{index}.pt")


def relax(options: Options, field: torch.Tensor) -> torch.Tensor:
    def after(index: int) -> bool:
        if index % options.every == 0:
            try_or_defer(dump, options, index, field)
        return sync_should_stop(deferred_error() is not None)

    for index in range(options.rounds):
        edge = field[:1].clone()
        dist.all_reduce(edge)
        field[0] = edge[0] / dist.get_world_size()
        field = 0.5 * (field + field.roll(1))
        if after(index):
            break
    return field


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    relax(Options(), torch.rand(32))
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
