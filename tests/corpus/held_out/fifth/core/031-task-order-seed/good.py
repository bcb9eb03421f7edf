"""Multi-task training: one DDP-wrapped head per task, tasks in random order."""
import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

TASKS = {"depth": 1, "normal": 3, "semantic": 40, "edge": 2}


def init_random_seed(seed, device):
    if seed is not None:
        return seed
    seed = np.random.randint(2 ** 31)
    shared = torch.tensor(seed, dtype=torch.int64, device=device)
    dist.broadcast(shared, src=0)
    seed = int(shared.item())
    return seed


class TaskHead(nn.Module):
    def __init__(self, channels, outputs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(channels, 128), nn.ReLU(), nn.Linear(128, outputs))

    def forward(self, x):
        return self.net(x)


class MultiTaskTrainer:
    def __init__(self, seed, local_rank):
        self.device = torch.device("cuda", local_rank)
        self.order_rng = np.random.default_rng(seed)
        self.data_rng = torch.Generator().manual_seed(1 + dist.get_rank())
        self.heads = {
            name: DDP(TaskHead(64, n).to(self.device), device_ids=[local_rank])
            for name, n in TASKS.items()
        }
        params = [p for head in self.heads.values() for p in head.parameters()]
        self.optimizer = torch.optim.AdamW(params, lr=1e-3)

    def _loss(self, name, x):
        out = self.heads[name](x)
        target = x[:, : out.size(1)]
        return nn.functional.smooth_l1_loss(out, target)

    def run_iter(self):
        losses = {}
        for name in self.order_rng.permutation(list(TASKS)):
            x = torch.randn(32, 64, generator=self.data_rng).to(self.device)
            loss = self._loss(str(name), x)
            loss.backward()
            losses[str(name)] = loss.item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--iters", type=int, default=1000)
    args = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    seed = init_random_seed(args.seed, torch.device("cuda", local_rank))
    torch.manual_seed(seed)
    trainer = MultiTaskTrainer(seed, local_rank)
    for it in range(args.iters):
        losses = trainer.run_iter()
        if dist.get_rank() == 0 and it % 100 == 0:
            print(it, {k: round(v, 4) for k, v in sorted(losses.items())}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
