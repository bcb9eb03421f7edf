import argparse
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def local_batches(rank):
    for index in range(6 + 2 * rank):
        yield torch.full((4, 10), float(index)) / 10


def epoch(model, opt, rank):
    running, seen = torch.zeros(1), 0
    with model.join():
        for x in local_batches(rank):
            loss = model(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.detach()
            seen += 1
    totals = torch.cat([running, torch.tensor([float(seen)])])
    dist.all_reduce(totals)  # after the join, where every rank arrives
    return (totals[0] / totals[1]).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = DistributedDataParallel(torch.nn.Linear(10, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(args.epochs):
        mean = epoch(model, opt, dist.get_rank())
        if dist.get_rank() == 0:
            print(f"epoch {number}: {mean:.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
