import sys
from pathlib import Path

import torch
import torch.distributed as dist

DIM = 256


def my_shards(root, rank, world):
    files = sorted(Path(root).glob("*.pt"))
    return files[rank::world], -(-len(files) // world)


def embed_sum(path):
    rows = torch.load(path, map_location="cpu")
    return rows.float().sum(0), rows.shape[0]


def main(root):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    shards, rounds = my_shards(root, rank, world)
    centroid = torch.zeros(DIM)
    seen = torch.zeros(1)
    for i in range(rounds):
        part, n = torch.zeros(DIM), 0
        if i >= len(shards):
            print(f"rank {rank}: out of shards after {i}")
            dist.destroy_process_group()
            break
        part, n = embed_sum(shards[i])
        count = torch.tensor([float(n)])
        dist.all_reduce(part)
        dist.all_reduce(count)
        centroid += part
        seen += count
    if rank == 0:
        torch.save(centroid / seen, "centroid.pt")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
