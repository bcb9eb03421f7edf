from datetime import timedelta

import torch
import torch.distributed as dist


def mix(x, y, copy):
    if dist.get_rank() == 0:
        print("mixing")
    dist.all_reduce(y)
    dist.all_reduce(x, group=copy)


def main():
    limit = timedelta(seconds=5)
    dist.init_process_group("gloo", timeout=limit)
    copy = dist.new_group(list(range(dist.get_world_size())), timeout=limit)
    mix(torch.ones(2), torch.ones(2), copy)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
