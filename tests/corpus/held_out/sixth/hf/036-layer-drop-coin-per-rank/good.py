import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from speech.data import AudioStream
from speech.losses import contrastive_loss
from speech.modules import ConvFrontEnd, EncoderLayer


class Encoder(nn.Module):
    def __init__(self, depth=24, dim=1024, layerdrop=0.1):
        super().__init__()
        self.front = ConvFrontEnd(dim)
        self.layers = nn.ModuleList(EncoderLayer(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.layerdrop = layerdrop
        self.coin = torch.Generator()
        self.coin.manual_seed(1234)

    def forward(self, wave):
        x = self.front(wave)
        for layer in self.layers:
            if self.training and torch.rand((), generator=self.coin).item() < self.layerdrop:
                continue
            x = layer(x)
        return self.norm(x)


def seed_everything(seed: int, rank: int):
    """Dropout and masks must differ between the ranks."""
    random.seed(seed + rank)
    np.random.seed(seed + rank)
    torch.manual_seed(seed + rank)
    torch.cuda.manual_seed(seed + rank)


def main(steps: int = 200_000, seed: int = 13):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(seed)
    model = Encoder().cuda()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    seed_everything(seed, rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    stream = iter(AudioStream("data/librilight", rank, dist.get_world_size(), crop=250_000))
    for step in range(steps):
        wave, mask = next(stream)
        loss = contrastive_loss(model(wave.cuda()), mask.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 200 == 0 and rank == 0:
            print(f"{step} {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
