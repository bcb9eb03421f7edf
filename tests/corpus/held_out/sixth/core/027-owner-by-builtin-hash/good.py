import os

import torch
import torch.distributed as dist
import zlib
from torch import nn


class TableOptimizer(torch.optim.Optimizer):
    """Row-wise Adagrad whose state lives on one owner rank for each table."""

    def __init__(self, named_params, lr=0.05, eps=1e-8):
        named = list(named_params)
        super().__init__([{"params": [p for _, p in named]}], {"lr": lr, "eps": eps})
        self.names = [n for n, _ in named]
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def owner(self, name):
        return zlib.crc32(name.encode()) % self.world

    @torch.no_grad()
    def step(self, closure=None):
        group = self.param_groups[0]
        for name, p in zip(self.names, group["params"]):
            grad = p.grad if p.grad is not None else torch.zeros_like(p)
            dist.all_reduce(grad)
            grad /= self.world
            src = self.owner(name)
            if src == self.rank:
                st = self.state[p]
                if "sum" not in st:
                    st["sum"] = torch.zeros(p.shape[0], device=p.device)
                st["sum"] += grad.pow(2).flatten(1).mean(1) if p.dim() > 1 else grad.pow(2)
                scale = group["lr"] / (st["sum"].sqrt() + group["eps"])
                p -= grad * (scale[:, None] if p.dim() > 1 else scale)
            dist.broadcast(p.data, src=src)


class TwoTower(nn.Module):
    def __init__(self, users=50_000, items=20_000, dim=64):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, u, i):
        return (self.proj(self.user(u)) * self.item(i)).sum(-1)


def main(steps=5000, batch=4096):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(7)
    model = TwoTower().cuda()
    optim = TableOptimizer(model.named_parameters())
    gen = torch.Generator(device="cuda").manual_seed(100 + dist.get_rank())
    for step in range(steps):
        u = torch.randint(50_000, (batch,), generator=gen, device="cuda")
        i = torch.randint(20_000, (batch,), generator=gen, device="cuda")
        y = ((u + i) % 2).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(u, i), y)
        model.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        if step % 500 == 0 and dist.get_rank() == 0:
            print(step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
