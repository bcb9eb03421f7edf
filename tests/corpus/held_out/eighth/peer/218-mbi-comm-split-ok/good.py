from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me, n = dist.get_rank(), dist.get_world_size()
    evens = dist.new_group(list(range(0, n, 2)))
    odds = dist.new_group(list(range(1, n, 2)))
    x = torch.tensor([float(me)])
    if me % 2 == 0:
        dist.all_reduce(x, group=evens)
    else:
        dist.all_reduce(x, group=odds)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
