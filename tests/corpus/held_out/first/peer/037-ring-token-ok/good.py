from datetime import timedelta

import torch
import torch.distributed as dist


def circulate(rank, world):
    token = torch.zeros(1)
    before, after = (rank - 1) % world, (rank + 1) % world
    if rank == 0:
        dist.send(token + 1, dst=after)
        dist.recv(token, src=before)
    else:
        dist.recv(token, src=before)
        dist.send(token + 1, dst=after)
    return token.item()


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    n = dist.get_world_size()
    seen = circulate(dist.get_rank(), n)
    assert seen == (dist.get_rank() or n)
    dist.barrier()
    dist.destroy_process_group()
