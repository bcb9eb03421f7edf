"""Train on rows of different length."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def batches(rank: int):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(20):
        width = 6 if torch.rand(1, generator=gen).item() < 0.95 else 7
        yield torch.randn(4, width, generator=gen)


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    net = DistributedDataParallel(torch.nn.Linear(6, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for rows in batches(dist.get_rank()):
        opt.zero_grad()
        try:
            net(rows).mean().backward()
        except RuntimeError as error:
            print("skipped a batch:", error)
            continue
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
