from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
me = dist.get_rank()
box = torch.zeros(1)
if me == 0:
    dist.recv(box, src=2)
    print("early", box.item())
    dist.recv(box, src=1)
    print("from one", box.item())
elif me in (1, 2):
    dist.send(box + me, dst=0)
dist.barrier()
dist.destroy_process_group()
