from datetime import timedelta

import torch
import torch.distributed as dist


def warm_up(rank, limit=5):
    for turn in range(limit):
        load = torch.tensor([turn + rank])
        dist.all_reduce(load)
        if load.item() > 40:
            break
    else:
        dist.barrier()
        return limit
    return turn


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    print(warm_up(dist.get_rank()))
    dist.destroy_process_group()
