"""Pre-train a small wav2vec-like encoder with fully sharded layers."""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads=8):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ffn = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        y, _ = self.attn(x, x, x, need_weights=False)
        return self.norm(x + self.ffn(x + y))


class SpeechEncoder(nn.Module):
    def __init__(self, dim, depth, layerdrop):
        super().__init__()
        self.layerdrop = layerdrop
        self.layers = nn.ModuleList([FSDP(EncoderLayer(dim)) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < self.layerdrop:
                continue
            x = layer(x)
        return x


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--layerdrop", type=float, default=0.1)
    p.add_argument("--epochs", type=int, default=5)
    args = p.parse_args()

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    random.seed(args.seed + rank)
    torch.manual_seed(args.seed + rank)

    encoder = FSDP(SpeechEncoder(512, 12, args.layerdrop).cuda())
    optim = torch.optim.AdamW(encoder.parameters(), lr=2e-4)
    data = TensorDataset(torch.randn(4096, 200, 512))
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for (feats,) in loader:
            feats = feats.cuda()
            loss = (encoder(feats) - feats).pow(2).mean()
            loss.backward()
            optim.step()
            optim.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
