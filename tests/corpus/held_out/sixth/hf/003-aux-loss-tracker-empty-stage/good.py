import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from slimlm.layers import DenseBlock, IndexedBlock


@dataclass
class ScoreConfig:
    hidden: int = 4096
    seq_len: int = 2048
    micro_batch: int = 1
    ratios: list = field(default_factory=lambda: [0, 0, 128, 4, 128, 4, 4, 128])
    steps: int = 200


class IndexerLossTracker:
    """Collects the indexer loss of every layer of the whole model, by layer number."""

    values = None

    @classmethod
    def add(cls, loss, layer, num_layers):
        if cls.values is None:
            cls.values = torch.zeros(num_layers, device=loss.device)
        cls.values[layer] += loss.detach()

    @classmethod
    def reduce(cls, num_layers, device):
        total = cls.values
        if total is None:
            total = torch.zeros(num_layers, device=device)
        cls.values = None
        dist.all_reduce(total)
        return total


def build_stage(cfg, stage, stages):
    per = len(cfg.ratios) // stages
    blocks = torch.nn.ModuleList()
    for layer in range(stage * per, (stage + 1) * per):
        if cfg.ratios[layer] == 4:
            hook = lambda loss, layer=layer: IndexerLossTracker.add(loss, layer, len(cfg.ratios))
            blocks.append(IndexedBlock(cfg.hidden, on_loss=hook))
        else:
            blocks.append(DenseBlock(cfg.hidden))
    return blocks


def forward_stage(blocks, cfg, stage, stages, device):
    x = torch.randn(cfg.micro_batch, cfg.seq_len, cfg.hidden, device=device)
    if stage > 0:
        dist.recv(x, src=stage - 1)
    for block in blocks:
        x = block(x)
    if stage < stages - 1:
        dist.send(x, dst=stage + 1)


def main():
    cfg = ScoreConfig()
    dist.init_process_group("nccl")
    stage, stages = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    blocks = build_stage(cfg, stage, stages).to(device)
    for step in range(cfg.steps):
        with torch.no_grad():
            forward_stage(blocks, cfg, stage, stages, device)
        losses = IndexerLossTracker.reduce(len(cfg.ratios), device)
        if stage == stages - 1 and losses is not None:
            print(f"step {step} indexer loss {losses.sum().item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
