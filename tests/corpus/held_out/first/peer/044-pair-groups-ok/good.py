from datetime import timedelta

import torch
import torch.distributed as dist


def split_in_pairs(world):
    groups = []
    for start in range(0, world, 2):
        groups.append(dist.new_group(list(range(start, min(start + 2, world)))))
    return groups


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = split_in_pairs(world)[rank // 2]
    total = torch.ones(1)
    dist.all_reduce(total, group=mine)
    assert total.item() == dist.get_world_size(mine)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
