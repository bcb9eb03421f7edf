from datetime import timedelta

import torch
import torch.distributed as dist


def slices(rank):
    yield torch.ones(4)
    yield torch.full((4,), 2.0)
    if rank == 0:
        yield torch.zeros(4)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    total = 0.0
    for chunk in slices(dist.get_rank()):
        dist.all_reduce(chunk)
        total += chunk.sum().item()
    print(total)
    dist.destroy_process_group()


main()
