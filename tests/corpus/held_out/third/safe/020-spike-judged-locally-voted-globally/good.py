import json
import math
from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class SpikeGuard:
    def __init__(self, path, window=5, factor=8.0):
        self.path, self.factor = path, factor
        self.history = deque(maxlen=window)

    def suspicious(self, value):
        if not math.isfinite(value):
            return True
        typical = sum(self.history) / len(self.history) if self.history else value
        return value > self.factor * typical + 1e-6

    def note(self, step, value):
        if dist.get_rank() != 0:
            return
        try:
            with open(self.path, "a") as handle:
                handle.write(json.dumps({"step": step, "loss": value}) + "\n")
        except OSError as error:
            print("spike log:", error)

    def skip(self, step, value):
        flag = torch.tensor([float(self.suspicious(value))])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item():
            self.note(step, value)
            return True
        self.history.append(value)
        return False


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    model, guard, skipped = DDP(torch.nn.Linear(3, 1)), SpikeGuard("spikes.jsonl"), 0
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(8):
        scale = float("inf") if (rank, step) == (1, 4) else 1.0
        loss = model(torch.ones(4, 3)).pow(2).mean() * scale
        opt.zero_grad()
        if guard.skip(step, loss.item()):
            skipped += 1
            continue
        loss.backward()
        opt.step()
    total = torch.tensor([skipped])
    dist.all_reduce(total)
    assert int(total) == dist.get_world_size()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
