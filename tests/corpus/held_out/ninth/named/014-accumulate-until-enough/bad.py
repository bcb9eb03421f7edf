"""Accumulates gradients until enough tokens have been seen."""
import contextlib
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BUDGET = 64


def texts(seed, number):
    gen = torch.Generator().manual_seed(seed)
    for _ in range(number):
        length = int(torch.randint(4, 30, (1,), generator=gen))
        yield torch.randint(0, 50, (length,), generator=gen)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    net = torch.nn.Sequential(torch.nn.Embedding(50, 8), torch.nn.Linear(8, 50))
    model = DistributedDataParallel(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = 0
    for text in texts(dist.get_rank(), number=40):
        seen += len(text)
        full = seen >= BUDGET
        with contextlib.nullcontext() if full else model.no_sync():
            loss = torch.nn.functional.cross_entropy(model(text[:-1]), text[1:])
            loss.backward()
        if full:
            opt.step()
            opt.zero_grad()
            seen = 0
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
