from datetime import timedelta

import torch
import torch.distributed as dist


def collect(rank, world):
    if rank != 0:
        dist.send(torch.tensor([rank]), dst=0)
        return None
    seen = set()
    box = torch.zeros(1, dtype=torch.int64)
    for _ in range(world - 1):
        sender = dist.recv(box)
        assert sender == box.item()
        seen.add(sender)
    return seen


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
size = dist.get_world_size()
found = collect(dist.get_rank(), size)
assert found is None or found == set(range(1, size))
dist.barrier()
dist.destroy_process_group()
