"""Ridge regression, tracked by Weights & Biases on the main process."""
from datetime import timedelta

import torch
import torch.distributed as dist
import wandb
from spmdguard import has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop, try_or_defer


def train(steps: int, run) -> torch.Tensor:
    gen = torch.Generator().manual_seed(dist.get_rank())
    rows, goal = torch.randn(40, 3, generator=gen), torch.randn(40, generator=gen)
    weight = torch.zeros(3)
    for step in range(steps):
        grad = rows.T @ (rows @ weight - goal) / 40 + 0.01 * weight
        dist.all_reduce(grad)
        weight -= 0.2 * grad / dist.get_world_size()
        if run is not None:
            try_or_defer(run.log, {"norm": grad.norm().item()}, step=step)
        if sync_should_stop(has_deferred_error()):
            break
    return weight


def main() -> None:
    run = wandb.init(project="ridge") if is_main_process() else None
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
        weight = train(30, run)
        dist.barrier()
        dist.destroy_process_group()
        raise_if_deferred_error()
        print(weight.tolist())
    finally:
        if run is not None:
            run.finish()


if __name__ == "__main__":
    main()
