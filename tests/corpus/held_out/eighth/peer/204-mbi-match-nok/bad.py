from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
table = torch.zeros(3)
match dist.get_rank():
    case 0:
        table += 1
        dist.broadcast(table, src=0)
    case _:
        table -= 1
dist.all_reduce(table)
print(table)
dist.destroy_process_group()
