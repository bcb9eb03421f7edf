from datetime import timedelta

import torch
import torch.distributed as dist


def half_of(rank, world):
    middle = world // 2
    if rank < middle:
        return list(range(middle))
    return list(range(middle, world))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    members = half_of(rank, world)
    group = dist.new_group(ranks=members)
    value = torch.tensor([float(rank)])
    dist.all_reduce(value, group=group)
    value /= len(members)
    dist.all_reduce(value)
    if rank == 0:
        print("mean of the halves", value.item() / world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
