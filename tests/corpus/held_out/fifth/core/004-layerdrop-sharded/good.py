import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


@dataclass
class EncoderConfig:
    layers: int = 12
    dim: int = 512
    heads: int = 8
    layerdrop: float = 0.1
    seed: int = 1
    updates: int = 1000


class SpeechEncoder(nn.Module):
    def __init__(self, cfg: EncoderConfig):
        super().__init__()
        self.layerdrop = cfg.layerdrop
        self.layers = nn.ModuleList()
        for _ in range(cfg.layers):
            layer = nn.TransformerEncoderLayer(cfg.dim, cfg.heads, 4 * cfg.dim, batch_first=True)
            self.layers.append(FSDP(layer.cuda(), sync_module_states=True))
        self.norm = nn.LayerNorm(cfg.dim)

    def forward(self, x, padding_mask=None):
        for layer in self.layers:
            drop = self.training and torch.rand(()).item() < self.layerdrop
            out = layer(x, src_key_padding_mask=padding_mask)
            keep = 0.0 if drop else 1.0
            x = x + keep * (out - x)
        return self.norm(x)


def synthetic_batch(cfg, generator):
    frames = torch.randn(4, 200, cfg.dim, generator=generator)
    return frames.cuda()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    cfg = EncoderConfig()
    torch.manual_seed(cfg.seed + rank)
    data_rng = torch.Generator().manual_seed(1000 + rank)

    model = FSDP(SpeechEncoder(cfg).cuda(), sync_module_states=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    model.train()
    for update in range(cfg.updates):
        x = synthetic_batch(cfg, data_rng)
        loss = (model(x) - x).abs().mean()
        loss.backward()
        model.clip_grad_norm_(5.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if update % 100 == 0:
            stat = loss.detach()
            dist.all_reduce(stat, op=dist.ReduceOp.AVG)
            if rank == 0:
                print(f"update {update} loss {stat.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
