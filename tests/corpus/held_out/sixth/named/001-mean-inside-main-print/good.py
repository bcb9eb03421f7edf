"""Plain DDP loop, logs the mean loss."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def mean_over_ranks(value):
    total = value.detach().clone()
    dist.all_reduce(total)
    return (total / dist.get_world_size()).item()


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DDP(nn.Linear(32, 1).cuda(), device_ids=[local])
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1000):
        x = torch.randn(64, 32, device="cuda")
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            mean = mean_over_ranks(loss)
            if rank == 0:
                print(f"step {step}: loss {mean:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
