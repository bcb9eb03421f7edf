import glob
import os
import re
from collections import defaultdict

import torch
import torch.distributed as dist


class LocalCheckpoints:
    """Checkpoints on the local SSD; one is usable only if all ranks hold their part of it."""

    NOT_SEARCHED = -2

    def __init__(self, root: str):
        self.root = root
        self.rank = dist.get_rank()
        self.latest = self.NOT_SEARCHED
        os.makedirs(root, exist_ok=True)

    def _mine(self):
        pattern = re.compile(rf"iter(\d+)-rank{self.rank}\.pt$")
        return [int(m.group(1)) for f in glob.glob(f"{self.root}/*.pt") if (m := pattern.search(f))]

    def find_latest(self) -> int:
        if self.latest != self.NOT_SEARCHED:
            return self.latest
        per_rank = [None] * dist.get_world_size()
        dist.all_gather_object(per_rank, self._mine())
        holders = defaultdict(set)
        for r, iterations in enumerate(per_rank):
            for it in iterations:
                holders[it].add(r)
        complete = [it for it, ranks in holders.items() if len(ranks) == len(per_rank)]
        self.latest = max(complete, default=-1)
        return self.latest

    def load(self):
        it = self.find_latest()
        if it < 0:
            return None
        return torch.load(f"{self.root}/iter{it}-rank{self.rank}.pt")

    def save(self, iteration: int, state) -> None:
        self.latest = self.NOT_SEARCHED
        path = f"{self.root}/iter{iteration}-rank{self.rank}.pt"
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)
        newest = self.find_latest()
        for it in self._mine():
            if it < newest:
                os.remove(f"{self.root}/iter{it}-rank{self.rank}.pt")


def main():
    dist.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
    manager = LocalCheckpoints("/ssd/local_ckpt")
    start = 0
    if manager.find_latest() >= 0:
        state = manager.load()
        net.load_state_dict(state["net"])
        start = state["iteration"]
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for iteration in range(start + 1, 401):
        net(torch.randn(4, 16)).square().mean().backward()
        opt.step()
        opt.zero_grad()
        if iteration % 50 == 0:
            manager.save(iteration, {"net": net.state_dict(), "iteration": iteration})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
