"""Hand-made dynamic loss scaling for row-sharded embeddings (gradients differ by rank)."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class AgreedScaler:
    def __init__(self, device, scale=2.0 ** 15, growth_interval=1000):
        self.scale, self.growth_interval = scale, growth_interval
        self.good_steps = 0
        self.device = device

    def scaled(self, loss):
        return loss * self.scale

    @torch.no_grad()
    def unscale_and_check(self, params):
        bad = torch.zeros(1, device=self.device)
        for p in params:
            if p.grad is None:
                continue
            p.grad.mul_(1.0 / self.scale)
            bad += (~torch.isfinite(p.grad)).any()
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        return bool(bad.item())

    def update(self, overflow):
        if overflow:
            self.scale = max(1.0, self.scale / 2)
            self.good_steps = 0
            return
        self.good_steps += 1
        if self.good_steps % self.growth_interval == 0:
            self.scale *= 2


class RowShardedEmbedding(nn.Module):
    """Each rank owns a contiguous block of rows; a lookup sums the partial answers."""

    def __init__(self, rows, dim):
        super().__init__()
        self.per_rank = -(-rows // dist.get_world_size())
        self.low = self.per_rank * dist.get_rank()
        self.weight = nn.Parameter(torch.randn(self.per_rank, dim) * 0.02)

    def forward(self, ids):
        outside = (ids < self.low) | (ids >= self.low + self.per_rank)
        local = (ids - self.low).masked_fill(outside, 0)
        part = nn.functional.embedding(local, self.weight).masked_fill(outside.unsqueeze(-1), 0.0)
        return SumForward.apply(part)


class SumForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


class Ranker(nn.Module):
    def __init__(self, rows=100_000, dim=64):
        super().__init__()
        self.table = RowShardedEmbedding(rows, dim)
        self.tower = nn.Sequential(nn.Linear(dim * 4, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, ids):
        return self.tower(self.table(ids).flatten(1)).squeeze(-1)


def global_batch(step, device):
    """Same ids on all ranks: the ranks share one batch and split the table."""
    g = torch.Generator().manual_seed(step)
    ids = torch.randint(0, 100_000, (512, 4), generator=g)
    return ids.to(device), (ids.sum(1) % 2).float().to(device)


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    rank = dist.get_rank()

    torch.manual_seed(1)
    model = Ranker().to(device)
    with torch.no_grad():
        g = torch.Generator(device=device).manual_seed(50 + rank)
        model.table.weight.normal_(0, 0.02, generator=g)
    params = list(model.parameters())
    optimizer = torch.optim.Adagrad(params, lr=0.02)
    scaler = AgreedScaler(device)

    skipped = 0
    for step in range(3000):
        ids, label = global_batch(step, device)
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(ids)
        loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), label)
        optimizer.zero_grad(set_to_none=True)
        scaler.scaled(loss).backward()
        overflow = scaler.unscale_and_check(params)
        if overflow:
            skipped += 1
        else:
            optimizer.step()
        scaler.update(overflow)
        if rank == 0 and step % 200 == 0:
            print(f"step {step}: loss {loss.item():.4f}, scale {scaler.scale:g}, skipped {skipped}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
