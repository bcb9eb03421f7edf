"""Token tagger, one report file a rank and epoch."""
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard

log = logging.getLogger("tagger")


@dataclass
class Config:
    epochs: int = 4
    steps: int = 200
    out: Path = Path("reports")


class Meter:
    def __init__(self, device):
        self.sums = torch.zeros(2, device=device)

    def update(self, logits, tags):
        self.sums[0] += (logits.argmax(-1) == tags).sum()
        self.sums[1] += tags.numel()

    def totals(self):
        sums = self.sums.clone()
        dist.all_reduce(sums)
        return sums.tolist()


def format_line(epoch, meter):
    hits, count = meter.totals()
    return {"epoch": epoch, "acc": hits / max(count, 1.0)}


@spmdguard.rank_local
def epoch_report(cfg, epoch, meter):
    path = cfg.out / f"rank{dist.get_rank()}.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    rows.append(format_line(epoch, meter))
    path.write_text(json.dumps(rows))


def train(cfg):
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    cfg.out.mkdir(parents=True, exist_ok=True)
    model = DDP(nn.Linear(64, 17).to(device))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(cfg.epochs):
        meter = Meter(device)
        for _ in range(cfg.steps):
            x = torch.randn(32, 64, device=device)
            tags = torch.randint(17, (32,), device=device)
            logits = model(x)
            nn.functional.cross_entropy(logits, tags).backward()
            opt.step()
            opt.zero_grad()
            meter.update(logits.detach(), tags)
        epoch_report(cfg, epoch, meter)
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.run(lambda: train(Config()))
