import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass(frozen=True)
class Table:
    name: str
    rows: int


@dataclass
class Options:
    tables: tuple = (Table("user", 10_000_000), Table("item", 2_000_000), Table("tag", 50_000))
    dim: int = 64
    dense: int = 13
    lr_rows: float = 0.05
    lr: float = 1e-3
    log: int = 100
    eval_every: int = 5000
    out: str = "rec"


def exchange(x, recv, send):
    out = x.new_empty((sum(recv), *x.shape[1:]))
    dist.all_to_all_single(out, x.contiguous(), recv, send)
    return out


class ShardedTable:
    """Row r lives on rank r % world. Rows are updated with plain Adagrad on arrival."""

    def __init__(self, spec, dim, lr):
        self.spec, self.lr = spec, lr
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        local = (spec.rows - self.rank + self.world - 1) // self.world
        gen = torch.Generator("cuda").manual_seed(31 * self.rank + hash_name(spec.name))
        self.weight = torch.empty(local, dim, device="cuda").normal_(0, 0.01, generator=gen)
        self.state = torch.zeros(local, device="cuda")

    def lookup(self, ids):
        home = ids % self.world
        order = home.argsort(stable=True)
        counts = torch.bincount(home, minlength=self.world)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        send, recv = counts.tolist(), theirs.tolist()
        asked = exchange(ids[order], recv, send) // self.world
        rows = exchange(self.weight[asked], send, recv)
        out = torch.empty(len(ids), rows.size(1), device="cuda")
        out[order] = rows
        return out, (order, send, recv, asked)

    def push_grad(self, grad, plan):
        order, send, recv, asked = plan
        g = exchange(grad[order], recv, send)
        if asked.numel() == 0:
            return
        rows, inverse = asked.unique(return_inverse=True)
        total = torch.zeros(len(rows), g.size(1), device=g.device).index_add_(0, inverse, g)
        self.state[rows] += total.pow(2).mean(1)
        self.weight[rows] -= self.lr * total / (self.state[rows].sqrt() + 1e-8)[:, None]


def hash_name(name):
    return sum(ord(c) * 131 ** i for i, c in enumerate(name)) % 1_000_003


class Tower(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(opt.dense, 256), nn.ReLU(), nn.Linear(256, opt.dim))
        n = len(opt.tables) + 1
        self.top = nn.Sequential(nn.Linear(opt.dim + n * (n - 1) // 2, 256), nn.ReLU(), nn.Linear(256, 1))
        self.register_buffer("pairs", torch.tril_indices(n, n, -1))

    def forward(self, dense, embs):
        d = self.bottom(dense)
        z = torch.stack([d, *embs], 1)
        inter = (z @ z.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([d, inter], 1)).squeeze(1)


class Recommender:
    def __init__(self, opt):
        self.opt = opt
        self.tables = {t.name: ShardedTable(t, opt.dim, opt.lr_rows) for t in opt.tables}
        self.tower = DDP(Tower(opt).cuda(), device_ids=[torch.cuda.current_device()])
        self.optim = torch.optim.Adam(self.tower.parameters(), lr=opt.lr)

    def forward(self, batch, grad=True):
        embs, plans = [], []
        for t in self.opt.tables:
            out, plan = self.tables[t.name].lookup(batch[t.name].cuda())
            embs.append(out.requires_grad_(grad))
            plans.append(plan)
        net = self.tower if grad else self.tower.module
        return net(batch["dense"].cuda(), embs), embs, plans

    def step(self, batch):
        logit, embs, plans = self.forward(batch)
        loss = F.binary_cross_entropy_with_logits(logit, batch["label"].cuda())
        loss.backward()
        self.optim.step()
        self.optim.zero_grad()
        for t, emb, plan in zip(self.opt.tables, embs, plans):
            self.tables[t.name].push_grad(emb.grad / dist.get_world_size(), plan)
        return loss.detach()

    def save(self, step):
        root = Path(self.opt.out) / str(step)
        root.mkdir(parents=True, exist_ok=True)
        for name, t in self.tables.items():
            torch.save({"weight": t.weight, "state": t.state}, root / f"{name}.{t.rank}-of-{t.world}.pt")
        if dist.get_rank() == 0:
            torch.save({"tower": self.tower.module.state_dict(), "optim": self.optim.state_dict()}, root / "dense.pt")
        dist.barrier()
        if dist.get_rank() == 0:
            (root / "COMPLETE").touch()


def in_step(loader, limit=None):
    """Batches until the first rank is dry; the flag travels with MIN."""
    it, n = iter(loader), 0
    while limit is None or n < limit:
        batch = next(it, None)
        flag = torch.tensor([int(batch is not None)], device="cuda")
        dist.all_reduce(flag, op=dist.ReduceOp.MIN)
        if not flag.item():
            return
        n += 1
        yield batch


@torch.no_grad()
def evaluate(rec, loader):
    scores, labels = [], []
    for batch in in_step(loader, 200):
        scores.append(rec.forward(batch, grad=False)[0])
        labels.append(batch["label"].cuda())
    if not scores:
        return float("nan")
    s, y = torch.cat(scores), torch.cat(labels)
    size = torch.tensor([len(s)], device="cuda")
    dist.all_reduce(size, op=dist.ReduceOp.MAX)
    pad = int(size) - len(s)
    packed = torch.stack([F.pad(s, (0, pad)), F.pad(y.float(), (0, pad), value=-1.0)])
    parts = [torch.empty_like(packed) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, packed)
    s, y = torch.cat(parts, 1)
    s, y = s[y >= 0], y[y >= 0]
    order = s.argsort()
    ranks = torch.empty_like(s)
    ranks[order] = torch.arange(1, len(s) + 1, device=s.device, dtype=s.dtype)
    pos = y.sum()
    return ((ranks[y == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos)).clamp(min=1)).item()


def main(train_loader, val_loader, epochs=1):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    opt = Options()
    rec = Recommender(opt)
    step, window, t0 = 0, torch.zeros(2, device="cuda"), time.time()
    for epoch in range(epochs):
        for batch in in_step(train_loader):
            step += 1
            window += torch.stack([rec.step(batch), torch.ones((), device="cuda")])
            if step % opt.log == 0:
                dist.all_reduce(window)
                if dist.get_rank() == 0:
                    print(f"{step} bce {window[0] / window[1]:.4f} {time.time() - t0:.0f}s", file=sys.stderr)
                window.zero_()
            if step % opt.eval_every == 0:
                auc = evaluate(rec, val_loader)
                rec.save(step)
                if dist.get_rank() == 0:
                    print(f"{step} auc {auc:.4f}", file=sys.stderr)
    dist.destroy_process_group()
