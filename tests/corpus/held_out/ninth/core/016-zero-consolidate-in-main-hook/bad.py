from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class CheckpointHook:
    def __init__(self, interval, path):
        self.interval, self.path = interval, path

    def after_iter(self, runner):
        if runner.rank != 0 or runner.iter % self.interval:
            return
        runner.opt.consolidate_state_dict(to=0)
        torch.save({"model": runner.model.module.state_dict(),
                    "optimizer": runner.opt.state_dict(),
                    "iter": runner.iter}, self.path)


class Runner:
    def __init__(self, hooks):
        self.rank, self.iter, self.hooks = dist.get_rank(), 0, hooks
        self.model = DDP(torch.nn.Linear(32, 8))
        self.opt = ZeroRedundancyOptimizer(
            self.model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)

    def train(self, iters):
        while self.iter < iters:
            self.opt.zero_grad()
            self.model(torch.randn(4, 32)).abs().mean().backward()
            self.opt.step()
            self.iter += 1
            for hook in self.hooks:
                hook.after_iter(self)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    Runner([CheckpointHook(interval=10, path="/tmp/zero_iter.pth")]).train(40)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
