from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop


def read(folder: Path, turn: int) -> torch.Tensor:
    return torch.load(folder / f"part-{dist.get_rank()}-{turn}.pt")


def epoch(folder: Path, weight: torch.Tensor, turns: int) -> torch.Tensor:
    for turn in range(turns):
        rows = None
        with deferring("read rows"):
            rows = read(folder, turn)
        if sync_should_stop(has_deferred_error()):
            break
        grad = (weight - rows).mean(0)
        dist.all_reduce(grad)
        weight = weight - 0.1 * grad
    return weight


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    weight = epoch(Path("parts"), torch.zeros(4), turns=8)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(weight.tolist())


if __name__ == "__main__":
    main()
