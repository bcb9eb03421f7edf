from datetime import timedelta

import torch
import torch.distributed as dist


def halves():
    size = dist.get_world_size()
    cut = size // 2
    low, high = list(range(cut)), list(range(cut, size))
    return cut, dist.new_group(low), dist.new_group(high)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    cut, low, high = halves()
    mine = low if dist.get_rank() < cut else high
    t = torch.ones(1)
    dist.all_reduce(t, group=mine)
    assert t.item() == dist.get_world_size(mine)
    dist.barrier()
    dist.destroy_process_group()


main()
