from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def first_stage(net, batches, dst):
    for x, target in batches:
        dist.send(target, dst=dst)
        dist.send(net(x).detach(), dst=dst)


def last_stage(net, count, src):
    losses = []
    for _ in range(count):
        hidden = torch.empty(4, 300_000)
        target = torch.empty(4, 200_000)
        dist.recv(hidden, src=src)
        dist.recv(target, src=src)
        losses.append((net(hidden).mean() - target.mean()).abs().item())
    return losses


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    torch.manual_seed(0)
    batches = [(torch.randn(4, 3), torch.rand(4, 200_000)) for _ in range(3)]
    if rank == 0:
        first_stage(nn.Linear(3, 300_000), batches, dst=1)
    elif rank == 1:
        print(last_stage(nn.Identity(), len(batches), src=0))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
