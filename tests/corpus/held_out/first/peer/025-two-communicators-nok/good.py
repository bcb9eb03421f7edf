from datetime import timedelta

import torch
import torch.distributed as dist


def both(x, first, second):
    dist.all_reduce(x, group=first)
    dist.all_reduce(x, group=second)
    return x


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    everyone = list(range(dist.get_world_size()))
    left = dist.new_group(everyone)
    right = dist.new_group(everyone)
    x = torch.ones(3)
    if dist.get_rank() % 2 == 0:
        both(x, left, right)
    else:
        both(x * 2, left, right)
    print(x)
    dist.destroy_process_group()


main()
