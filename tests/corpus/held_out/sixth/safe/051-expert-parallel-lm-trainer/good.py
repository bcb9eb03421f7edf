import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


@dataclass
class MoeCfg:
    vocab: int = 32000
    dim: int = 512
    depth: int = 8
    experts: int = 16
    ep: int = 4
    every: int = 2
    lr: float = 3e-4
    batch: int = 8
    steps: int = 10_000
    aux: float = 0.01
    log: int = 25
    save: int = 1000
    out: str = "moe"


class Topology:
    def __init__(self, ep):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        assert self.world % ep == 0, (self.world, ep)
        self.ep, self.ep_group, self.replica_group = ep, None, None
        for lo in range(0, self.world, ep):
            members = list(range(lo, lo + ep))
            g = dist.new_group(members)
            if self.rank in members:
                self.ep_group = g
        for off in range(ep):
            members = list(range(off, self.world, ep))
            g = dist.new_group(members)
            if self.rank in members:
                self.replica_group, self.replica_lead = g, members[0]
        self.ep_rank = self.rank % ep


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, out_splits, in_splits, group):
        ctx.info = out_splits, in_splits, group
        y = x.new_empty((sum(out_splits), x.size(1)))
        dist.all_to_all_single(y, x.contiguous(), out_splits, in_splits, group=group)
        return y

    @staticmethod
    def backward(ctx, g):
        out_splits, in_splits, group = ctx.info
        back = g.new_empty((sum(in_splits), g.size(1)))
        dist.all_to_all_single(back, g.contiguous(), in_splits, out_splits, group=group)
        return back, None, None, None


class MoeLayer(nn.Module):
    def __init__(self, cfg, topo):
        super().__init__()
        self.topo, self.n = topo, cfg.experts
        self.local = cfg.experts // topo.ep
        self.router = nn.Linear(cfg.dim, cfg.experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))
            for _ in range(self.local))
        for p in self.experts.parameters():
            p.is_expert = True
        self.load = self.balance = None

    def forward(self, x):
        flat = x.reshape(-1, x.size(-1))
        prob = self.router(flat).softmax(-1)
        weight, choice = prob.max(-1)
        counts = torch.bincount(choice, minlength=self.n)
        self.balance = self.n * (counts / counts.sum() * prob.mean(0)).sum()
        self.load = counts.detach().clone()
        order = choice.argsort(stable=True)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts, group=self.topo.ep_group)
        theirs = theirs.view(self.topo.ep, self.local)
        send = counts.view(self.topo.ep, self.local).sum(1).tolist()
        recv = theirs.sum(1).tolist()
        rows = Exchange.apply(flat[order], recv, send, self.topo.ep_group)
        owner = torch.arange(self.local, device=x.device).repeat(self.topo.ep).repeat_interleave(theirs.flatten())
        out = torch.zeros_like(rows)
        for e, expert in enumerate(self.experts):
            idx = (owner == e).nonzero().squeeze(1)
            if idx.numel() == 0:
                continue
            out = out.index_copy(0, idx, expert(rows[idx]))
        if not out.requires_grad and rows.requires_grad:
            out = out + rows * 0.0
        back = Exchange.apply(out, send, recv, self.topo.ep_group)
        result = torch.zeros_like(flat).index_copy(0, order, back)
        return (result * weight[:, None]).view_as(x)


class Block(nn.Module):
    def __init__(self, cfg, topo, moe):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.att = nn.MultiheadAttention(cfg.dim, 8, batch_first=True)
        self.ff = MoeLayer(cfg, topo) if moe else nn.Sequential(
            nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x):
        m = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        h = self.n1(x)
        x = x + self.att(h, h, h, attn_mask=m, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class MoeLM(nn.Module):
    def __init__(self, cfg, topo):
        super().__init__()
        self.word = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg, topo, i % cfg.every == cfg.every - 1) for i in range(cfg.depth))
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, ids):
        x = self.word(ids)
        for b in self.blocks:
            x = b(x)
        return self.head(x)

    def moes(self):
        return [b.ff for b in self.blocks if isinstance(b.ff, MoeLayer)]


def reduce_gradients(model, topo):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        if getattr(p, "is_expert", False):
            p.grad.div_(topo.ep)
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=topo.replica_group)
        else:
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)


def save(model, cfg, topo, step):
    shared = {k: v for k, v in model.state_dict().items() if ".experts." not in k}
    own = {k: v for k, v in model.state_dict().items() if ".experts." in k}
    os.makedirs(cfg.out, exist_ok=True)
    if topo.rank == 0:
        torch.save(shared, f"{cfg.out}/{step}-shared.pt")
    if topo.rank == topo.replica_lead:
        torch.save(own, f"{cfg.out}/{step}-experts{topo.ep_rank}.pt")
    dist.barrier()


def main(dataset):
    cfg = MoeCfg()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    topo = Topology(cfg.ep)
    torch.manual_seed(5 + topo.ep_rank)
    model = MoeLM(cfg, topo).cuda()
    for p in model.parameters():
        if getattr(p, "is_expert", False):
            dist.broadcast(p.data, topo.replica_lead, group=topo.replica_group)
        else:
            dist.broadcast(p.data, 0)
    optim = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    sampler = DistributedSampler(dataset, drop_last=True)
    loader, step, epoch, t0 = DataLoader(dataset, cfg.batch, sampler=sampler, drop_last=True), 0, 0, time.time()
    while step < cfg.steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for ids in loader:
            step += 1
            ids = ids.cuda()
            ce = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            (ce + cfg.aux * sum(m.balance for m in model.moes())).backward()
            reduce_gradients(model, topo)
            optim.step()
            optim.zero_grad()
            if step % cfg.log == 0:
                load = torch.stack([m.load for m in model.moes()]).float()
                dist.all_reduce(load)
                worst = (load.max(1).values / load.mean(1)).max().item()
                if topo.rank == 0:
                    print(f"{step} ce {ce.item():.3f} imbalance {worst:.2f} {time.time() - t0:.0f}s", flush=True)
            if step % cfg.save == 0 or step == cfg.steps:
                save(model, cfg, topo, step)
            if step == cfg.steps:
                break
    dist.destroy_process_group()
