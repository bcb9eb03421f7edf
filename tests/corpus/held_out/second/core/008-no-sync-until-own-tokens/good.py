from contextlib import nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as Parallel


def sentences(seed, count, longest=40):
    gen = torch.Generator().manual_seed(seed)
    for _ in range(count):
        length = int(torch.randint(5, longest, (1,), generator=gen))
        row = torch.zeros(longest, dtype=torch.long)
        row[:length] = torch.randint(1, 100, (length,), generator=gen)
        yield row.unsqueeze(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(100, 16)
        self.out = torch.nn.Linear(16, 100)

    def forward(self, ids):
        return torch.nn.functional.cross_entropy(self.out(self.table(ids)).flatten(0, 1), ids.flatten())


def accumulate(model, opt, stream, budget):
    pending = updates = 0
    for ids in stream:
        tokens = (ids > 0).sum().reshape(1)
        dist.all_reduce(tokens)
        pending += tokens.item()
        ready = pending >= budget * dist.get_world_size()
        with nullcontext() if ready else model.no_sync():
            model(ids).backward()
        if ready:
            opt.step()
            opt.zero_grad()
            pending, updates = 0, updates + 1
    return updates


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    model = Parallel(Model())
    opt = torch.optim.AdamW(model.parameters())
    print(accumulate(model, opt, sentences(dist.get_rank(), 30), budget=100))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
