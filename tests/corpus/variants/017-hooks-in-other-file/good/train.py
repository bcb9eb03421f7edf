from datetime import timedelta

import torch
import torch.distributed as dist
from hooks import remember
from spmdguard import is_main_process, raise_if_deferred_error, sync_should_stop


def descend(point: torch.Tensor, steps: int) -> torch.Tensor:
    for number in range(steps):
        slope = 2 * point + 0.01 * torch.randn_like(point)
        dist.all_reduce(slope, op=dist.ReduceOp.SUM)
        point = point - 0.1 * slope / dist.get_world_size()
        if is_main_process():
            remember("history.csv", {"step": number, "norm": point.norm().item()})
        if sync_should_stop():
            break
    return point


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    descend(torch.tensor([4.0, 1.0]), 25)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
