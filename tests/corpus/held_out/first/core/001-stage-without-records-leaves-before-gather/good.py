"""Collect activation sizes from every pipeline stage, one record per step."""
import json
from collections import defaultdict
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn


@dataclass
class ActivationMonitor:
    path: str
    watched: tuple = (nn.Linear,)
    values: dict = field(default_factory=dict)

    def attach(self, stage):
        for name, module in stage.named_modules():
            if isinstance(module, self.watched):
                module.register_forward_hook(self._recorder(name))

    def _recorder(self, name):
        def record(module, inputs, output):
            self.values[name] = output.detach().float().abs().mean().item()

        return record

    def collect(self):
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, self.values)
        merged = defaultdict(list)
        for part in parts:
            for name, value in part.items():
                merged[name].append(value)
        self.values = {}
        return {name: sum(v) / len(v) for name, v in merged.items()}

    def write(self, step):
        record = self.collect()
        if dist.get_rank() == 0:
            with open(self.path, "a") as out:
                out.write(json.dumps({"step": step, **record}) + "\n")


def build_stage(index, count, width=32):
    if index == 0:
        return nn.Sequential(nn.Embedding(100, width), nn.LayerNorm(width))
    if index == count - 1:
        return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 100))
    return nn.Sequential(nn.Linear(width, width), nn.GELU())


def main():
    dist.init_process_group("gloo")
    index, count = dist.get_rank(), dist.get_world_size()
    stage = build_stage(index, count)
    monitor = ActivationMonitor("activations.jsonl")
    monitor.attach(stage)
    for step in range(20):
        tokens = torch.randint(0, 100, (4, 16))
        stage(tokens if index == 0 else torch.randn(4, 16, 32))
        if step % 5 == 0:
            monitor.write(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
