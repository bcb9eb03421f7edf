import functools
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1 = nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        y, _ = self.attn(x, x, x, need_weights=False)
        x = self.norm1(x + y)
        return self.norm2(x + self.ff(x))


class Encoder(nn.Module):
    def __init__(self, depth=12, width=256, heads=4, layerdrop=0.1):
        super().__init__()
        self.proj = nn.Linear(80, width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(depth))
        self.layerdrop = layerdrop

    def forward(self, x):
        x = self.proj(x)
        for layer in self.layers:
            if self.training and random.random() < self.layerdrop:
                continue
            x = layer(x)
        return x


def masked_loss(out, frames):
    keep = torch.rand(frames.shape[:2], device=frames.device) < 0.3
    return (out[..., :80] - frames).square().mean(-1)[keep].mean()


def main():
    dist.init_process_group("nccl")
    local = dist.get_rank() % torch.cuda.device_count()
    torch.cuda.set_device(local)
    random.seed(1 + dist.get_rank())
    torch.manual_seed(1)
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={EncoderLayer})
    model = FSDP(Encoder(), auto_wrap_policy=policy, device_id=local)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for step in range(1000):
        frames = torch.randn(8, 200, 80, device="cuda")
        loss = masked_loss(model(frames), frames)
        loss.backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
