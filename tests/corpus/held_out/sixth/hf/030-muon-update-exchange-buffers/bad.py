import os

import torch
import torch.distributed as dist
from torch import nn

from vidtrain.data import clip_loader
from vidtrain.model import VideoDiT


def orthogonalize(g, steps=5):
    x = g / (g.norm() + 1e-7)
    transposed = x.size(0) > x.size(1)
    x = x.T if transposed else x
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if transposed else x


class OwnerMuon:
    """Rank r works out the update of the parameters r, r + world, ...; all ranks then apply all updates."""

    def __init__(self, params, lr=0.02, momentum=0.95):
        self.params = [p for p in params if p.ndim == 2]
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.lr, self.momentum = lr, momentum
        self.buffers = {i: torch.zeros_like(self.params[i]) for i in self.owned(self.rank)}

    def owned(self, rank):
        return range(rank, len(self.params), self.world)

    @torch.no_grad()
    def step(self):
        for p in self.params:
            dist.all_reduce(p.grad)
            p.grad.div_(self.world)
        updates = []
        for i in self.owned(self.rank):
            self.buffers[i].mul_(self.momentum).add_(self.params[i].grad)
            updates.append(orthogonalize(self.buffers[i]).flatten())
        local = torch.cat(updates) if updates else torch.zeros(0, device=self.params[0].device)
        for src in range(self.world):
            flat = local if src == self.rank else torch.empty_like(local)
            dist.broadcast(flat, src=src)
            offset = 0
            for i in self.owned(src):
                n = self.params[i].numel()
                self.params[i].sub_(flat[offset:offset + n].view_as(self.params[i]), alpha=self.lr)
                offset += n


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(0)
    model = VideoDiT(depth=28).cuda()
    optimizer = OwnerMuon(model.parameters())
    loader = iter(clip_loader("data/clips", dist.get_rank(), dist.get_world_size()))
    for step in range(50_000):
        latents, noise, text = (t.cuda() for t in next(loader))
        loss = nn.functional.mse_loss(model(latents, text), noise)
        model.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
