from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank = dist.get_rank()
stop = torch.zeros(1, dtype=torch.uint8)
turn = 0
while True:
    if rank == 0 and turn >= 3:
        stop.fill_(1)
    dist.broadcast(stop, src=0)
    if stop.item():
        break
    dist.barrier()
    turn += 1
assert turn == 3
dist.destroy_process_group()
