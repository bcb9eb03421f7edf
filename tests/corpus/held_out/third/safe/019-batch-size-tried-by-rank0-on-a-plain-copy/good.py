import copy
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def fits(net, size):
    try:
        net(torch.randn(size, 8)).sum().backward()
        return size <= 40
    except RuntimeError:
        return False
    finally:
        net.zero_grad(set_to_none=True)


def largest(net, start):
    size = start
    while size > 1 and not fits(net, size):
        size //= 2
    return size


def agreed_batch_size(net, start):
    cell = torch.zeros(1, dtype=torch.int64)
    if dist.get_rank() == 0:
        cell[0] = largest(copy.deepcopy(net), start)
    dist.broadcast(cell, src=0)
    return int(cell)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    net = torch.nn.Linear(8, 2)
    size = agreed_batch_size(net, start=128)
    assert size == 32
    model = DDP(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(size, 8)).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
