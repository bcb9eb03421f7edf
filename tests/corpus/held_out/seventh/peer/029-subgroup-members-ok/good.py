from datetime import timedelta

import torch
import torch.distributed as dist

LIMIT = timedelta(seconds=5)


def main():
    dist.init_process_group("gloo", timeout=LIMIT)
    evens = list(range(0, dist.get_world_size(), 2))
    team = dist.new_group(ranks=evens, timeout=LIMIT)
    x = torch.ones(2)
    if dist.get_rank() in evens:
        dist.all_reduce(x, group=team)
        dist.barrier(group=team)
        assert x[0].item() == len(evens)
    dist.barrier()
    dist.destroy_process_group()


main()
