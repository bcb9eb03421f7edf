from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    others = dist.new_group([r for r in range(dist.get_world_size()) if r != 0])
    t = torch.ones(1)
    if rank != 0:
        for _ in range(3):
            dist.all_reduce(t, group=others)
            t /= dist.get_world_size(others)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
