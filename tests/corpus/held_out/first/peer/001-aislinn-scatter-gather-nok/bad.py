from datetime import timedelta

import torch
import torch.distributed as dist


def exchange(rank, world):
    piece = torch.zeros(3)
    if rank == 0:
        hands = [torch.arange(3.0) + 10 * k for k in range(world)]
        back = [torch.zeros(3) for _ in range(world)]
        dist.scatter(piece, hands, src=0)
        dist.gather(piece, back, dst=0)
    if rank >= 1:
        dist.gather(piece, dst=0)
        dist.scatter(piece, src=0)
    return piece


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    print(exchange(dist.get_rank(), dist.get_world_size()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
