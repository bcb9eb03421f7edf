from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Streams:
    def __init__(self, seed):
        self.shared = torch.Generator().manual_seed(seed)
        self.own = torch.Generator().manual_seed(seed + 1000 * (1 + dist.get_rank()))

    def noise(self, shape):
        return torch.randn(shape, generator=self.own)

    def coin(self, p):
        return torch.rand(1, generator=self.shared).item() < p


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    streams = Streams(seed=42)
    model = DDP(torch.nn.Linear(5, 5))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    synced = 0
    for step in range(12):
        x = torch.ones(4, 5) + 0.1 * streams.noise((4, 5))
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if streams.coin(0.5):
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            synced += 1
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, synced)
    assert len(set(counts)) == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
