from datetime import timedelta

import torch
import torch.distributed as dist


def exchange(rows, rank, world):
    counts = [rank + 1] * world
    inbox = torch.zeros(sum(counts), rows.shape[1])
    dist.all_to_all_single(inbox, rows, output_split_sizes=counts, input_split_sizes=counts)
    return inbox


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = torch.full(((rank + 1) * world, 3), float(rank))
    print(rank, exchange(rows, rank, world)[:, 0].tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
