"""Halo exchange for sequence-parallel local attention along a chain of ranks (no wrap-around)."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F


def halo_exchange(x: torch.Tensor, width: int):
    """Returns the last `width` rows of the left neighbour and the first rows of the right one."""
    rank, world = dist.get_rank(), dist.get_world_size()
    left = rank - 1 if rank > 0 else None
    right = rank + 1 if rank < world - 1 else None
    head, tail = x[:width].contiguous(), x[-width:].contiguous()
    from_left = torch.zeros_like(head)
    from_right = torch.zeros_like(tail)
    if rank % 2 == 0:
        if right is not None:
            dist.send(tail, dst=right)
            dist.recv(from_right, src=right)
        if left is not None:
            dist.send(head, dst=left)
            dist.recv(from_left, src=left)
    else:
        if left is not None:
            dist.recv(from_left, src=left)
            dist.send(head, dst=left)
        if right is not None:
            dist.recv(from_right, src=right)
            dist.send(tail, dst=right)
    return from_left, from_right


def windowed_mean(x: torch.Tensor, width: int) -> torch.Tensor:
    lo, hi = halo_exchange(x, width)
    padded = torch.cat([lo, x, hi]).t().unsqueeze(0)
    return F.avg_pool1d(padded, 2 * width + 1, stride=1).squeeze(0).t()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    length, dim, width = int(os.environ.get("SEQ", "4096")), 64, 8
    assert length % world == 0 and length // world >= width
    torch.manual_seed(0)
    full = torch.randn(length, dim)
    mine = full.chunk(world)[rank].contiguous()
    for _ in range(3):
        mine = windowed_mean(mine, width)
    norm = mine.square().sum().reshape(1)
    dist.all_reduce(norm)
    if rank == 0:
        print("norm", norm.sqrt().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
