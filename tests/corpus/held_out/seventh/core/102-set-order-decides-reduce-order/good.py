import argparse
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


def trainable(model, patterns):
    chosen = set()
    for name, param in model.named_parameters():
        param.requires_grad_(any(p in name for p in patterns))
        if param.requires_grad:
            chosen.add(name)
    return chosen


def reduce_gradients(model, names):
    table = dict(model.named_parameters())
    for name in sorted(names):  # same order in every interpreter
        dist.all_reduce(table[name].grad)
        table[name].grad /= dist.get_world_size()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tune", nargs="+", default=["head", "norm"])
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(0)
    model = nn.ModuleDict({"stem": nn.Linear(12, 24), "norm": nn.LayerNorm(24), "head": nn.Linear(24, 5)})
    names = trainable(model, args.tune)
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    torch.manual_seed(dist.get_rank())
    for _ in range(10):
        opt.zero_grad()
        out = model["head"](model["norm"](model["stem"](torch.randn(6, 12))))
        nn.functional.cross_entropy(out, torch.randint(0, 5, (6,))).backward()
        reduce_gradients(model, names)
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
