"""Model-parallel bookkeeping (tensor and data groups) and a vocabulary-parallel loss."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class ParallelState:
    def __init__(self, tensor_parallel):
        self.world, self.rank = dist.get_world_size(), dist.get_rank()
        if self.world % tensor_parallel:
            raise RuntimeError(f"world size {self.world} is not a multiple of {tensor_parallel}")
        self.tp = self.dp = None
        patience = timedelta(minutes=10)
        for start in range(0, self.world, tensor_parallel):
            ranks = list(range(start, start + tensor_parallel))
            group = dist.new_group(ranks, timeout=patience)
            if self.rank in ranks:
                self.tp, self.tp_ranks = group, ranks
        for offset in range(tensor_parallel):
            ranks = list(range(offset, self.world, tensor_parallel))
            group = dist.new_group(ranks, timeout=patience)
            if self.rank in ranks:
                self.dp, self.dp_ranks = group, ranks

    tp_rank = property(lambda self: self.tp_ranks.index(self.rank))
    tp_size = property(lambda self: len(self.tp_ranks))
    dp_rank = property(lambda self: self.dp_ranks.index(self.rank))
    dp_size = property(lambda self: len(self.dp_ranks))
    tp_source = property(lambda self: self.tp_ranks[0])


class VocabParallelLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, ps):
        top = logits.max(dim=-1).values
        dist.all_reduce(top, op=dist.ReduceOp.MAX, group=ps.tp)
        logits = logits - top.unsqueeze(-1)
        width = logits.size(-1)
        low = ps.tp_rank * width
        outside = (target < low) | (target >= low + width)
        local = (target - low).masked_fill(outside, 0)
        picked = logits.gather(-1, local.unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0)
        dist.all_reduce(picked, group=ps.tp)
        exp = logits.exp()
        total = exp.sum(-1)
        dist.all_reduce(total, group=ps.tp)
        ctx.save_for_backward(exp / total.unsqueeze(-1), local, outside)
        return total.log() - picked

    @staticmethod
    def backward(ctx, grad_out):
        probs, local, outside = ctx.saved_tensors
        grad = probs.clone()
        hit = (~outside).to(grad.dtype)
        grad.scatter_add_(-1, local.unsqueeze(-1), -hit.unsqueeze(-1))
        return grad * grad_out.unsqueeze(-1), None, None


class SumGradAcrossTp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ps):
        ctx.ps = ps
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad, group=ctx.ps.tp)
        return grad, None


class TiedHead(nn.Module):
    def __init__(self, dim, vocab, ps):
        super().__init__()
        self.ps = ps
        self.body = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.out = nn.Linear(dim, vocab // ps.tp_size, bias=False)

    def forward(self, x, target):
        h = SumGradAcrossTp.apply(self.body(x), self.ps)
        return VocabParallelLoss.apply(self.out(h).float(), target, self.ps).mean()


def broadcast_body(model, ps):
    """Whole weights equal in the tensor group, all weights equal in the data group."""
    for p in model.body.parameters():
        dist.broadcast(p.data, src=ps.tp_source, group=ps.tp)
    for p in model.parameters():
        dist.broadcast(p.data, src=ps.dp_ranks[0], group=ps.dp)


def average_gradients(model, ps):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat, group=ps.dp)
    flat /= ps.dp_size
    at = 0
    for p in model.parameters():
        p.grad.copy_(flat[at:at + p.numel()].view_as(p))
        at += p.numel()


def batch_for(ps, step, dim, vocab, device):
    """The first rank of a tensor group draws the batch and hands it on."""
    x = torch.empty(16, dim, device=device)
    y = torch.empty(16, dtype=torch.long, device=device)
    if ps.tp_rank == 0:
        g = torch.Generator().manual_seed(step * 131 + ps.dp_rank)
        x.copy_(torch.randn(16, dim, generator=g))
        y.copy_(torch.randint(0, vocab, (16,), generator=g))
    dist.broadcast(x, src=ps.tp_source, group=ps.tp)
    dist.broadcast(y, src=ps.tp_source, group=ps.tp)
    return x, y


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    ps = ParallelState(int(os.environ.get("TP", "2")))
    torch.manual_seed(dist.get_rank())
    dim, vocab = 256, 8192
    model = TiedHead(dim, vocab, ps).to(device)
    broadcast_body(model, ps)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(400):
        x, y = batch_for(ps, step, dim, vocab, device)
        loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, ps)
        optimizer.step()
        if step % 40 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG, group=ps.dp)
            if dist.get_rank() == 0:
                print(f"step {step}: {mean.item():.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
