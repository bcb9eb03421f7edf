import json
import os
from collections import defaultdict

import torch
import torch.distributed as dist
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix = nn.MultiheadAttention(dim, 4, batch_first=True)

    def forward(self, x):
        return x + self.mix(x, x, x, need_weights=False)[0]


def build_stage(stage, stages, dim):
    """The first and last stages carry only projections, the others attention."""
    if stage in (0, stages - 1):
        return nn.Sequential(nn.Linear(dim, dim))
    return nn.Sequential(*[Attention(dim) for _ in range(4)])


class ActivationMonitor:
    def __init__(self, module, every, path):
        self.every = every
        self.path = path
        self.local = defaultdict(list)
        for name, child in module.named_modules():
            if isinstance(child, Attention):
                child.register_forward_hook(self._hook(name))

    def _hook(self, name):
        def record(_module, _inputs, output):
            self.local[f"{name}.rms"].append(output.detach().pow(2).mean().sqrt().item())

        return record

    def gather_and_aggregate(self):
        if not self.local:
            return {}
        mine = {k: sum(v) / len(v) for k, v in self.local.items()}
        self.local.clear()
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, mine)
        return {f"stage{i}/{k}": v for i, part in enumerate(parts) for k, v in part.items()}

    def after_step(self, step):
        if step % self.every:
            return
        merged = self.gather_and_aggregate()
        if dist.get_rank() == 0:
            with open(self.path, "a") as f:
                f.write(json.dumps({"step": step, **merged}) + "\n")


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, world, dim = dist.get_rank(), dist.get_world_size(), 256
    stage = build_stage(rank, world, dim).cuda()
    monitor = ActivationMonitor(stage, every=10, path="activations.jsonl")
    buf = torch.empty(4, 128, dim, device="cuda")
    with torch.no_grad():
        for step in range(1, 101):
            if rank == 0:
                x = torch.randn(4, 128, dim, device="cuda")
            else:
                dist.recv(buf, src=rank - 1)
                x = buf
            y = stage(x)
            if rank < world - 1:
                dist.send(y.contiguous(), dst=rank + 1)
            monitor.after_step(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
