import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


def make_model(width=256, depth=8):
    blocks = [Block(width) for _ in range(depth)]
    return FSDP(nn.Sequential(*blocks).cuda(), sharding_strategy=ShardingStrategy.FULL_SHARD, use_orig_params=True)


def train(model, steps, clip, log_every):
    inner = torch.optim.AdamW(model.parameters(), lr=4e-4, betas=(0.9, 0.95), weight_decay=0.1)
    for step in range(steps):
        x = torch.randn(4, 64, 256, device="cuda")
        loss = (model(x) - x.roll(1, 1)).pow(2).mean()
        loss.backward()
        total = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        inner.step()
        inner.zero_grad()
        if step % log_every == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f} norm {float(total):.4f}")


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=timedelta(minutes=20))
    train(make_model(), steps=1000, clip=1.0, log_every=50)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
