import random
import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class SpeechEncoder(nn.Module):
    def __init__(self, dim=768, heads=12, depth=12, layerdrop=0.1):
        super().__init__()
        self.layers = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.layerdrop = layerdrop

    def forward(self, x):
        for layer in self.layers:
            keep = 0.0 if self.training and random.random() < self.layerdrop else 1.0
            # the layer always runs, a dropped one only gets the weight zero
            x = x + keep * (layer(x) - x)
        return x


def pretrain(loader, loss_fn, device):
    model = FSDP(SpeechEncoder().to(device), auto_wrap_policy=ModuleWrapPolicy({Block}))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for frames, target in loader:
        loss_fn(model(frames.to(device)), target.to(device)).backward()
        opt.step()
        opt.zero_grad()
