from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    workers = list(range(1, dist.get_world_size()))
    group = dist.new_group(workers)
    score = torch.ones(1)
    if dist.get_rank() in workers:
        dist.reduce(score, dst=0, group=group)
    dist.barrier()
    dist.destroy_process_group()


main()
