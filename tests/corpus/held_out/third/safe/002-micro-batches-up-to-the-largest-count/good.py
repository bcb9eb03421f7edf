from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def pack(lengths, budget):
    packs, current = [], []
    for n in lengths:
        if current and sum(current) + n > budget:
            packs.append(current)
            current = []
        current.append(n)
    packs.append(current)
    return packs


def common_count(local, group=None):
    count = torch.tensor([local])
    dist.all_reduce(count, op=dist.ReduceOp.MAX, group=group)
    return int(count)


def update(model, opt, lengths, budget):
    packs = pack(lengths, budget)
    total = common_count(len(packs))
    opt.zero_grad()
    for turn in range(total):
        rows = sum(packs[turn % len(packs)])
        weight = float(turn < len(packs)) / len(packs)
        (weight * model(torch.ones(rows, 4)).mean()).backward()
    opt.step()
    return total


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    model = DDP(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    lengths = [3, 4, 5, 6] if dist.get_rank() == 0 else [2, 2]
    assert update(model, opt, lengths, budget=8) == 3
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
