from datetime import timedelta

import torch
import torch.distributed as dist


def start() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))


def shutdown() -> None:
    dist.barrier()
    dist.destroy_process_group()


def mean_over_ranks(value: float, world: int) -> float:
    box = torch.tensor([value])
    dist.all_reduce(box)
    return box.item() / world


def main() -> None:
    start()
    world = dist.get_world_size()
    losses = torch.rand(10, generator=torch.Generator().manual_seed(dist.get_rank()))
    shutdown()
    print("mean loss", mean_over_ranks(losses.mean().item(), world))


if __name__ == "__main__":
    main()
