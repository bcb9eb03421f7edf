from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class SlicedMomentum(torch.optim.Optimizer):
    """Rank r updates every parameter whose position is r modulo the world size."""

    def __init__(self, params, lr=0.02, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))

    @torch.no_grad()
    def step(self, closure=None):
        rank, world = dist.get_rank(), dist.get_world_size()
        for group in self.param_groups:
            params = [p.data for p in group["params"]]
            params += [torch.empty_like(params[-1])] * (-len(params) % world)
            for base in range(0, len(params), world):
                at = base + rank
                if at < len(group["params"]):
                    p = group["params"][at]
                    if p.grad is None:
                        continue
                    buf = self.state[p].setdefault("momentum", torch.zeros_like(p))
                    buf.mul_(group["beta"]).add_(p.grad)
                    p.add_(buf, alpha=-group["lr"])
                dist.all_gather(params[base:base + world], params[at].clone())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(0)
    blocks = nn.ModuleList(nn.Linear(16, 16, bias=False) for _ in range(6))
    opt = SlicedMomentum(blocks.parameters())
    for step in range(10):
        x = torch.randn(4, 16)
        for i, block in enumerate(blocks):
            x = x if i == 3 else block(x).tanh()  # block 3 is not used
        x.pow(2).mean().backward()
        for block in blocks:
            if block.weight.grad is not None:
                block.weight.grad.clamp_(-1, 1)
        opt.step()
        opt.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
