from datetime import timedelta

import torch
import torch.distributed as dist
from ending import part_ways
from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop


@rank_local
def checkpoint(path: str, vector: torch.Tensor) -> None:
    torch.save(vector, f"{path}.{dist.get_rank()}")


def power_iteration(steps: int) -> torch.Tensor:
    vector = torch.ones(8)
    for step in range(steps):
        vector = vector.roll(1) + vector
        dist.all_reduce(vector)
        vector = vector / vector.norm()
        checkpoint(f"vector-{step}", vector)
        if sync_should_stop(has_deferred_error()):
            break
    return vector


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    vector = power_iteration(12)
    part_ways()
    raise_if_deferred_error()
    print(vector)


if __name__ == "__main__":
    main()
