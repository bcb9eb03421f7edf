from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
buf = torch.zeros(1 << 16)
if dist.get_rank() == 0:
    dist.send(buf + 1, dst=1)
elif dist.get_rank() == 1:
    req = dist.irecv(buf, src=0)
    req.wait()
    print(buf.sum().item())
dist.destroy_process_group()
