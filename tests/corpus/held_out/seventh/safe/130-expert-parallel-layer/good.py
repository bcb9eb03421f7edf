"""Mixture of experts with the experts spread over the ranks of a group."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class AllToAllRows(torch.autograd.Function):
    """Exchange rows; the way back is the same exchange with the counts swapped."""

    @staticmethod
    def forward(ctx, rows, send, recv, group):
        ctx.send, ctx.recv, ctx.group = send, recv, group
        out = rows.new_empty(sum(recv), rows.shape[1])
        dist.all_to_all_single(out, rows.contiguous(), recv, send, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(sum(ctx.send), grad.shape[1])
        dist.all_to_all_single(out, grad.contiguous(), ctx.send, ctx.recv, group=ctx.group)
        return out, None, None, None


class ExpertGroups:
    """Runs of ``width`` ranks share the experts; equal places form a data group."""

    def __init__(self, width):
        rank, world = dist.get_rank(), dist.get_world_size()
        if world % width:
            raise ValueError(f"{world} ranks cannot be cut in runs of {width}")
        for start in range(0, world, width):
            group = dist.new_group(list(range(start, start + width)))
            if start <= rank < start + width:
                self.expert_group = group
        for place in range(width):
            group = dist.new_group(list(range(place, world, width)))
            if rank % width == place:
                self.data_group = group
        self.width, self.copies = width, world // width


class Experts(nn.Module):
    def __init__(self, dim, groups, per_rank=2):
        super().__init__()
        self.groups, self.per_rank = groups, per_rank
        self.total = per_rank * groups.width
        self.router = nn.Linear(dim, self.total)
        self.local = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
            for _ in range(per_rank)
        )
        self.load = None

    def exchange_counts(self, counts):
        got = torch.empty_like(counts)
        dist.all_to_all_single(got, counts, group=self.groups.expert_group)
        return got.view(self.groups.width, self.per_rank)

    def forward(self, x):
        gate = self.router(x).softmax(-1)
        weight, chosen = gate.max(dim=-1)
        order = chosen.argsort(stable=True)
        counts = torch.bincount(chosen, minlength=self.total)
        self.load = counts.detach()
        got = self.exchange_counts(counts)
        send = counts.view(self.groups.width, self.per_rank).sum(1).tolist()
        recv = got.sum(1).tolist()
        rows = AllToAllRows.apply(x[order], send, recv, self.groups.expert_group)

        owner = torch.arange(self.per_rank, device=x.device).repeat(self.groups.width)
        owner = owner.repeat_interleave(got.flatten())
        out = torch.zeros_like(rows)
        for i, expert in enumerate(self.local):
            mine = (owner == i).nonzero().squeeze(1)
            # an expert that nobody chose still runs, on no rows, and gets a gradient
            out = out.index_add(0, mine, expert(rows[mine]))

        back = AllToAllRows.apply(out, recv, send, self.groups.expert_group)
        restored = torch.empty_like(back).index_copy(0, order, back)
        return restored * weight.unsqueeze(1)


class Model(nn.Module):
    def __init__(self, vocab, dim, groups):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.moe = Experts(dim, groups)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.head(x + self.moe(x))


def sync_grads(model, groups):
    """Shared weights are averaged over all ranks, experts over their copies only."""
    for name, p in model.named_parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        if ".local." in name:
            if groups.copies > 1:
                dist.all_reduce(p.grad, group=groups.data_group)
        else:
            dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def same_start(model, groups):
    rank = dist.get_rank()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if ".local." in name:
                dist.broadcast(p, src=rank % groups.width, group=groups.data_group)
            else:
                dist.broadcast(p, src=0)


def report_load(moe, step):
    load = moe.load.float()
    dist.all_reduce(load)
    if dist.get_rank() == 0:
        share = (load / load.sum()).tolist()
        print(step, " ".join(f"{s:.2f}" for s in share), flush=True)


def save(model, folder, step):
    rank = dist.get_rank()
    os.makedirs(folder, exist_ok=True)
    experts = {k: v.cpu() for k, v in model.state_dict().items() if ".local." in k}
    if rank < model.moe.groups.width:  # the other runs hold copies
        torch.save(experts, os.path.join(folder, f"{step}-experts{rank}.pt"))
    if rank == 0:
        rest = {k: v.cpu() for k, v in model.state_dict().items() if ".local." not in k}
        torch.save(rest, os.path.join(folder, f"{step}-shared.pt"))
    dist.barrier()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--width", type=int, default=2)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--vocab", type=int, default=256)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--out", default="moe")
    args = p.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    groups = ExpertGroups(args.width)
    torch.manual_seed(dist.get_rank())
    model = Model(args.vocab, args.dim, groups).cuda()
    same_start(model, groups)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, args.steps + 1):
        n = int(torch.randint(16, 64, ()))  # ranks may bring different numbers of tokens
        tokens = torch.randint(0, args.vocab, (n,), device="cuda")
        loss = F.cross_entropy(model(tokens), tokens.roll(-1))
        opt.zero_grad()
        loss.backward()
        sync_grads(model, groups)
        opt.step()
        if step % 20 == 0:
            report_load(model.moe, step)
        if step == args.steps:
            save(model, args.out, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
