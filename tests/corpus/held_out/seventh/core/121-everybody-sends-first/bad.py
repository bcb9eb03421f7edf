import os

import torch
import torch.distributed as dist

ROWS, COLS = 4096, 8192


def exchange_edges(tile, peer):
    """Swap the border rows with the neighbour and return its row."""
    mine = tile[-1024:].contiguous() if dist.get_rank() == 0 else tile[:1024].contiguous()
    other = torch.empty_like(mine)
    dist.send(mine, dst=peer)
    dist.recv(other, src=peer)
    return other


def relax(tile, border):
    tile[:1024].lerp_(border, 0.25)
    tile[-1024:].lerp_(border, 0.25)
    return tile


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    assert dist.get_world_size() == 2, "two tiles only"
    peer = 1 - dist.get_rank()
    tile = torch.rand(ROWS, COLS, device="cuda")
    for _ in range(10):
        tile = relax(tile, exchange_edges(tile, peer))
    total = tile.sum()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(total.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
