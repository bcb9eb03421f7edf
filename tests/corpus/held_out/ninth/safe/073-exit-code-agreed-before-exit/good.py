import sys

import torch
import torch.distributed as dist


def check(rank):
    t = torch.tensor([rank + 1])
    dist.all_reduce(t)
    world = dist.get_world_size()
    return t.item() == world * (world + 1) // 2


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    verdict = 0 if check(rank) else 2
    codes = [None] * dist.get_world_size()
    dist.all_gather_object(codes, verdict)
    dist.destroy_process_group()
    if any(codes):
        if rank == 0:
            print("failed on", [r for r, c in enumerate(codes) if c], file=sys.stderr)
        sys.exit(max(codes))


if __name__ == "__main__":
    main()
