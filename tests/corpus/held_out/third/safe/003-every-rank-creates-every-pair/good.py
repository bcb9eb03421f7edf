from datetime import timedelta

import torch
import torch.distributed as dist


def pair_groups(layout):
    mine = None
    for members in layout:
        handle = dist.new_group(members)
        if dist.get_rank() in members:
            mine = (members, handle)
    return mine


def swap(block, members, handle):
    parts = [torch.empty_like(block) for _ in members]
    dist.all_gather(parts, block, group=handle)
    return parts[1 - members.index(dist.get_rank())]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    members, handle = pair_groups([[0, 3], [1, 2]])
    partner = 3 - rank
    got = swap(torch.tensor([float(rank)]), members, handle)
    assert got.item() == partner
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
