import time
from dataclasses import dataclass
from pathlib import Path

import spmdguard
import torch
from torch import distributed as dist


@dataclass
class Config:
    steps: int = 400
    report_every: int = 50
    out: str = "report.txt"


def shard_norm(params):
    sq = torch.stack([p.detach().square().sum() for p in params]).sum()
    dist.all_reduce(sq)
    return sq.sqrt().item()


def summarise(model, step, started):
    rate = (step + 1) / (time.monotonic() - started)
    norm = shard_norm(model.parameters())
    return f"step={step} rate={rate:.1f}/s norm={norm:.4f}"


@spmdguard.rank_local(only="main")
def report(cfg, model, step, started):
    line = summarise(model, step, started)
    with Path(cfg.out).open("a") as fh:
        fh.write(line + "\n")


def train(cfg):
    model = torch.nn.Linear(32, 32)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    started = time.monotonic()
    for step in range(cfg.steps):
        opt.zero_grad()
        model(torch.randn(8, 32)).square().mean().backward()
        opt.step()
        if step % cfg.report_every == 0:
            report(cfg, model, step, started)
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.init_process_group("gloo")
    train(Config())
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()
