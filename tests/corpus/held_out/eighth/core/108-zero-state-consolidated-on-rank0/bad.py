import argparse
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class CheckpointHook:
    def __init__(self, every, path):
        self.every, self.path = every, path

    def after_iter(self, it, model, opt):
        if it % self.every:
            return
        if dist.get_rank() == 0:
            if isinstance(opt, ZeroRedundancyOptimizer):
                opt.consolidate_state_dict(to=0)
            state = {"iter": it, "model": model.module.state_dict(), "opt": opt.state_dict()}
            torch.save(state, self.path)


def build_optimizer(model, sharded):
    if sharded:
        return ZeroRedundancyOptimizer(
            model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3
        )
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = DDP(torch.nn.Sequential(*[torch.nn.Linear(24, 24) for _ in range(4)]))
    opt = build_optimizer(model, sharded=not args.plain)
    hook = CheckpointHook(10, "/tmp/segmenter.pt")
    for it in range(1, 31):
        opt.zero_grad()
        model(torch.randn(8, 24)).pow(2).mean().backward()
        opt.step()
        hook.after_iter(it, model, opt)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
