from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def all_ranks_have_valid(has_valid):
    flag = torch.tensor([int(has_valid)])
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag.item())


def train(model, opt, stream, block):
    skipped = 0
    for hidden, length in stream:
        if not all_ranks_have_valid(length >= block):
            skipped += 1
            continue
        usable = hidden[: length - length % block]
        opt.zero_grad()
        model(usable).pow(2).mean().backward()
        opt.step()
    return skipped


def stream(rank, count):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(count):
        length = int(torch.randint(1, 12, (1,), generator=gen))
        yield torch.randn(12, 6, generator=gen), length


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    model = DDP(torch.nn.Linear(6, 6))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    skipped = train(model, opt, stream(dist.get_rank(), 15), block=4)
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, skipped)
    assert len(set(counts)) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
