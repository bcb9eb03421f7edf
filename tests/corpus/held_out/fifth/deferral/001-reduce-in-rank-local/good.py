import json
from pathlib import Path

import spmdguard
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class MetricLog:
    def __init__(self, root):
        self.path = Path(root) / f"metrics-{dist.get_rank()}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    @spmdguard.rank_local("metric log")
    def record(self, step, loss):
        with self.path.open("a") as fh:
            fh.write(json.dumps({"step": step, "loss": loss}) + "\n")


@spmdguard.collective
def mean_over_ranks(loss):
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return (mean / dist.get_world_size()).item()


@spmdguard.collective
def update(model, opt, x):
    loss = model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss


def main():
    spmdguard.init_process_group("gloo")
    model = DDP(torch.nn.Linear(16, 4))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    metrics = MetricLog("logs")
    for step in range(1000):
        loss = update(model, opt, torch.randn(32, 16))
        if step % 20 == 0:
            metrics.record(step, mean_over_ranks(loss))
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
