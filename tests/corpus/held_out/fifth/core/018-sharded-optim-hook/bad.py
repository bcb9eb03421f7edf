"""A runner with hooks; optimizer states are sharded with ZeroRedundancyOptimizer."""
import os
import os.path as osp

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Hook:
    def after_iter(self, runner):
        pass

    def after_epoch(self, runner):
        pass


class LoggerHook(Hook):
    def after_iter(self, runner):
        if runner.rank == 0 and runner.iter % 50 == 0:
            print(f"epoch {runner.epoch} iter {runner.iter} loss {runner.loss.item():.4f}")


class CheckpointHook(Hook):
    def __init__(self, out_dir, interval=1, save_optimizer=True):
        self.out_dir = out_dir
        self.interval = interval
        self.save_optimizer = save_optimizer

    def after_epoch(self, runner):
        if (runner.epoch + 1) % self.interval:
            return
        if runner.rank != 0:
            return
        checkpoint = {"epoch": runner.epoch, "model": runner.model.module.state_dict()}
        if self.save_optimizer:
            if isinstance(runner.optimizer, ZeroRedundancyOptimizer):
                runner.optimizer.consolidate_state_dict(to=0)
            checkpoint["optimizer"] = runner.optimizer.state_dict()
        os.makedirs(self.out_dir, exist_ok=True)
        torch.save(checkpoint, osp.join(self.out_dir, f"epoch_{runner.epoch + 1}.pth"))


class Runner:
    def __init__(self, hooks, epochs=12, iters=200):
        self.rank = dist.get_rank()
        self.hooks = hooks
        self.epochs, self.iters = epochs, iters
        self.device = torch.device("cuda", torch.cuda.current_device())
        net = nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(100))
        net(torch.zeros(1, 3, 32, 32))
        self.model = DDP(net.to(self.device), device_ids=[self.device.index])
        self.optimizer = ZeroRedundancyOptimizer(
            self.model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-4
        )

    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def train(self):
        for self.epoch in range(self.epochs):
            for self.iter in range(self.iters):
                x = torch.randn(16, 3, 32, 32, device=self.device)
                y = torch.randint(0, 100, (16,), device=self.device)
                self.loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                self.loss.backward()
                self.optimizer.step()
                self.call("after_iter")
            self.call("after_epoch")


if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    Runner([LoggerHook(), CheckpointHook("work_dirs/zero")]).train()
    dist.destroy_process_group()
