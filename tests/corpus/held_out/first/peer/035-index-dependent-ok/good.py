from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    active = [True] * dist.get_world_size()
    weights = torch.full((3,), float(rank))
    if active[rank]:
        dist.all_reduce(weights, op=dist.ReduceOp.MAX)
    print(weights)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
