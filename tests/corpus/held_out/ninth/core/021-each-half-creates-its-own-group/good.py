from datetime import timedelta

import torch
import torch.distributed as dist


def halves(world):
    middle = world // 2
    return [list(range(middle)), list(range(middle, world))]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    for ranks in halves(world):  # everybody creates both
        created = dist.new_group(ranks=ranks)
        if rank in ranks:
            members, group = ranks, created
    value = torch.tensor([float(rank)])
    dist.all_reduce(value, group=group)
    value /= len(members)
    dist.all_reduce(value)
    if rank == 0:
        print("mean of the halves", value.item() / world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
