from datetime import timedelta

import torch
import torch.distributed as dist


def total(x):
    t = torch.tensor([float(x)])
    dist.all_reduce(t)
    return t.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me = dist.get_rank()
    out = [total(k) for k in range(4)]
    print(out[me:])
    dist.destroy_process_group()


main()
