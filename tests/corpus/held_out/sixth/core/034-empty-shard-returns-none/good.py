import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor


class LowRank(nn.Module):
    """Frozen base with a small trained correction; rows of `a` may not suffice for all ranks."""

    def __init__(self, dim, rank=4):
        super().__init__()
        self.base = nn.Linear(dim, dim, bias=False)
        self.base.weight.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, dim) * 0.01)
        self.b = nn.Parameter(torch.zeros(rank, dim))

    def forward(self, x):
        return self.base(x) + (x @ self.a.T) @ self.b


class Trainer:
    def __init__(self, dim=1024, depth=6, clip=1.0):
        self.clip = clip
        net = nn.Sequential(*[LowRank(dim) for _ in range(depth)]).cuda()
        for m in net:
            fully_shard(m)
        self.net = fully_shard(net)
        self.params = [p for p in self.net.parameters() if p.requires_grad]
        self.optim = torch.optim.AdamW(self.params, lr=1e-4)

    def max_grad_value(self):
        found = []
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
            if g.numel() > 0:
                found.append(g.detach().abs().max())
        value = torch.stack(found).max() if found else torch.zeros((), device="cuda")
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return value

    def clip_by_value(self):
        value = self.max_grad_value()
        if value is None:
            return 0.0
        if value > self.clip:
            for p in self.params:
                if p.grad is not None:
                    p.grad.mul_(self.clip / value.item())
        return value.item()

    def step(self, x):
        loss = (self.net(x) - x).pow(2).mean()
        loss.backward()
        peak = self.clip_by_value()
        self.optim.step()
        self.optim.zero_grad()
        return loss.item(), peak


def main(steps=1000):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    trainer = Trainer()
    for step in range(steps):
        loss, peak = trainer.step(torch.randn(16, 1024, device="cuda"))
        if dist.get_rank() == 0 and step % 50 == 0:
            print(f"{step} loss {loss:.4f} max grad {peak:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
