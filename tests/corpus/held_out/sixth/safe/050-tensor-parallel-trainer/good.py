import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class Grid:
    def __init__(self, tp):
        rank, world = dist.get_rank(), dist.get_world_size()
        if world % tp:
            raise ValueError(f"world {world} is not divisible by {tp}")
        self.tp_group = self.dp_group = None
        for start in range(0, world, tp):
            ranks = list(range(start, start + tp))
            group = dist.new_group(ranks)
            if rank in ranks:
                self.tp_group, self.tp_ranks = group, ranks
        for offset in range(tp):
            ranks = list(range(offset, world, tp))
            group = dist.new_group(ranks)
            if rank in ranks:
                self.dp_group, self.dp_ranks = group, ranks
        self.tp_rank, self.tp_size = self.tp_ranks.index(rank), tp
        self.dp_rank, self.dp_size = self.dp_ranks.index(rank), len(self.dp_ranks)


class CopyIn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class ReduceOut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class SplitMLP(nn.Module):
    def __init__(self, dim, grid):
        super().__init__()
        self.grid = grid
        self.up = nn.Linear(dim, 4 * dim // grid.tp_size)
        self.down = nn.Linear(4 * dim // grid.tp_size, dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        if self.grid.tp_size == 1:
            return self.down(F.gelu(self.up(x))) + self.bias
        x = CopyIn.apply(x, self.grid.tp_group)
        return ReduceOut.apply(self.down(F.gelu(self.up(x))), self.grid.tp_group) + self.bias


class Net(nn.Module):
    def __init__(self, vocab, dim, depth, grid):
        super().__init__()
        self.word = nn.Embedding(vocab, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.mlps = nn.ModuleList(SplitMLP(dim, grid) for _ in range(depth))
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.word(ids)
        for norm, mlp in zip(self.norms, self.mlps):
            x = x + mlp(norm(x))
        return self.head(x)


class Feed:
    """tp rank 0 reads; the others get tokens (or the end flag) by broadcast."""

    def __init__(self, grid, make_loader, shape):
        self.grid, self.shape = grid, shape
        self.it = iter(make_loader(grid.dp_rank, grid.dp_size)) if grid.tp_rank == 0 else None

    def next(self):
        more = torch.ones(1, dtype=torch.long, device="cuda")
        ids = torch.empty(self.shape, dtype=torch.long, device="cuda")
        if self.it is not None:
            got = next(self.it, None)
            if got is None:
                more.zero_()
            else:
                ids.copy_(got)
        dist.all_reduce(more, op=dist.ReduceOp.MIN)
        if more.item() == 0:
            return None
        dist.broadcast(ids, self.grid.tp_ranks[0], group=self.grid.tp_group)
        return ids


def clip(model, grid, limit):
    own = torch.zeros((), device="cuda")
    shared = torch.zeros((), device="cuda")
    for name, p in model.named_parameters():
        split = ".up." in name or ".down." in name
        if split:
            own += p.grad.float().pow(2).sum()
        else:
            shared += p.grad.float().pow(2).sum()
    if grid.tp_size > 1:
        dist.all_reduce(own, group=grid.tp_group)
    norm = (own + shared).sqrt()
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    for p in model.parameters():
        p.grad.mul_(scale)
    return norm


def save(root, step, model, grid):
    folder = Path(root) / f"iter_{step:07d}"
    if dist.get_rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
    dist.barrier()
    if grid.dp_rank == 0:
        torch.save(model.state_dict(), folder / f"tp_{grid.tp_rank:02d}.pt")
    dist.barrier()
    if dist.get_rank() == 0:
        (Path(root) / "latest.json").write_text(json.dumps({"step": step, "tp": grid.tp_size}))


def main(make_loader, root, tp=2, steps=5000, batch=8, seq=512):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    grid = Grid(tp)
    torch.manual_seed(100)
    model = Net(32000, 768, 12, grid).cuda()
    for name, p in model.named_parameters():
        if ".up." in name or ".down." in name:
            nn.init.normal_(p, std=0.02, generator=torch.Generator("cuda").manual_seed(7 + grid.tp_rank))
        else:
            dist.broadcast(p.data, 0)
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4)
    feed = Feed(grid, make_loader, (batch, seq + 1))
    for step in range(1, steps + 1):
        ids = feed.next()
        if ids is None:
            break
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=grid.dp_group)
        norm = clip(model, grid, 1.0)
        optim.step()
        optim.zero_grad()
        if step % 20 == 0:
            shown = loss.detach().clone()
            dist.all_reduce(shown, op=dist.ReduceOp.AVG, group=grid.dp_group)
            if dist.get_rank() == 0:
                print(step, shown.item(), norm.item(), flush=True)
        if step % 500 == 0:
            save(root, step, model, grid)
    dist.destroy_process_group()
