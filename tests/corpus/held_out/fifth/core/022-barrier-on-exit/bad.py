import contextlib
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class World:
    def __init__(self):
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))

    def mean(self, value):
        value = value.detach().clone()
        dist.all_reduce(value)
        return value / self.size

    def shutdown(self):
        dist.barrier()
        dist.destroy_process_group()


@contextlib.contextmanager
def distributed():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    world = World()
    try:
        yield world
    finally:
        world.shutdown()


class Shards:
    """Each rank reads its own slice of a folder of tensors."""

    def __init__(self, folder, rank, size, steps):
        self.paths = sorted(Path(folder).glob("*.pt"))[rank::size]
        self.steps = steps

    def __iter__(self):
        for i in range(self.steps):
            blob = torch.load(self.paths[i % len(self.paths)])
            if blob["field"].isnan().any():
                raise ValueError(f"missing values in {self.paths[i % len(self.paths)]}")
            yield blob["field"], blob["next"]


def train(world, folder="data/shards", steps=2000):
    net = nn.Sequential(
        nn.Conv2d(8, 64, 3, padding=1), nn.GELU(), nn.Conv2d(64, 8, 3, padding=1)
    )
    model = DDP(net.to(world.device), device_ids=[world.device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, (now, later) in enumerate(Shards(folder, world.rank, world.size, steps)):
        now, later = now.to(world.device), later.to(world.device)
        loss = nn.functional.mse_loss(model(now), later)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            average = world.mean(loss)
            if world.rank == 0:
                print(f"{step} {average.item():.5f}", flush=True)


if __name__ == "__main__":
    with distributed() as world:
        train(world)
