import csv
from dataclasses import asdict, dataclass

import spmdguard
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Row:
    step: int
    loss: float
    lr: float


class Exporter:
    def __init__(self, path, every=50):
        self.path, self.every = path, every
        self.rows = []

    @staticmethod
    @spmdguard.rank_local(name="csv export")
    def dump(path, rows):
        with open(path, "a", newline="") as fh:
            writer = csv.DictWriter(fh, fieldnames=["step", "loss", "lr"])
            writer.writerows(asdict(r) for r in rows)

    def add(self, row):
        self.rows.append(row)
        if len(self.rows) >= self.every:
            self.dump(self.path, self.rows)
            self.rows = []


def main():
    spmdguard.init_process_group("gloo")
    model = DDP(torch.nn.Linear(10, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.StepLR(opt, 100, 0.5)
    exporter = Exporter(f"loss-{dist.get_rank()}.csv")
    for step in range(1000):
        loss = model(torch.randn(32, 10)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        exporter.add(Row(step, loss.item(), sched.get_last_lr()[0]))
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
