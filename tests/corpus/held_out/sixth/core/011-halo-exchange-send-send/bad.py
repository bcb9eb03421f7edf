"""Longitude-parallel convolution for a global forecast model."""
import os

import torch
import torch.distributed as dist
from torch import nn


class HaloExchange:
    """Append `width` columns of the neighbours to a west-east partitioned field."""

    def __init__(self, width):
        self.width = width
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.east = (self.rank + 1) % self.world
        self.west = (self.rank - 1) % self.world

    def __call__(self, field):
        w = self.width
        to_east = field[..., -w:].contiguous()
        to_west = field[..., :w].contiguous()
        if self.world == 1:
            return torch.cat([to_east, field, to_west], dim=-1)
        from_west, from_east = torch.empty_like(to_east), torch.empty_like(to_west)
        dist.send(to_east, dst=self.east)
        dist.recv(from_west, src=self.west)
        dist.send(to_west, dst=self.west)
        dist.recv(from_east, src=self.east)
        return torch.cat([from_west, field, from_east], dim=-1)


class LocalStep(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=(1, 5))

    def forward(self, padded):
        return self.conv(padded)


@torch.no_grad()
def rollout(model, state, steps, halo):
    fields = [state]
    for _ in range(steps):
        state = state + model(halo(state))
        fields.append(state)
    return torch.stack(fields)


def main(path, steps=40):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    world, rank = dist.get_world_size(), dist.get_rank()
    full = torch.load(path, map_location="cpu")
    state = full.chunk(world, dim=-1)[rank].cuda()
    model = LocalStep(state.shape[1]).cuda().eval()
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    out = rollout(model, state, steps, HaloExchange(2))
    torch.save(out.cpu(), f"forecast_{rank:03d}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main("analysis.pt")
