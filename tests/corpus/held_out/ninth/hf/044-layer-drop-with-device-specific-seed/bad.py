import random
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return x + torch.relu(self.mix(self.norm(x)))


class Encoder(nn.Module):
    def __init__(self, dim, depth, classes, drop=0.1):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head, self.drop = nn.Linear(dim, classes), drop

    def forward(self, x):
        for block in self.blocks:
            if self.training and random.random() < self.drop:
                continue
            x = block(x)
        return self.head(x)


def train(loader, seed=7):
    accelerator = Accelerator()  # FSDP, transformer_cls_to_wrap: Block
    set_seed(seed, device_specific=True)
    model = accelerator.prepare(Encoder(512, 24, 1000))
    opt, loader = accelerator.prepare(torch.optim.AdamW(model.parameters(), lr=1e-4), loader)
    for x, y in loader:
        accelerator.backward(nn.functional.cross_entropy(model(x), y))
        opt.step()
        opt.zero_grad()
