import math

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def split_by_tokens(lengths, budget, group=None):
    n = math.ceil(sum(lengths) / budget)
    if group is not None:
        agreed = torch.tensor([n], device="cuda")
        dist.all_reduce(agreed, op=dist.ReduceOp.MAX, group=group)
        n = int(agreed.item())
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[start::n] for start in range(n)]


class Actor:
    def __init__(self, net, dp_group, lr):
        self.dp_group = dp_group
        self.net = FSDP(net, process_group=dp_group)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr)

    def update(self, batch, budget):
        micro = split_by_tokens(batch["lengths"], budget)
        for rows in micro:
            logp = self.net(batch["ids"][rows])
            loss = -(logp * batch["advantage"][rows]).mean() * len(rows) / len(batch["lengths"])
            loss.backward()
        self.net.clip_grad_norm_(1.0)
        self.opt.step()
        self.opt.zero_grad()
