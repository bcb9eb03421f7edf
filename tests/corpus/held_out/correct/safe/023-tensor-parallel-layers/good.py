"""Column and row parallel layers with hand-written autograd functions."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

_TP = None


def tp_group():
    assert _TP is not None, "set_tp_group() comes first"
    return _TP


def set_tp_group(group):
    global _TP
    _TP = group


def tp_size():
    return dist.get_world_size(tp_group())


def tp_rank():
    return dist.get_rank(tp_group())


class _CopyToRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad, group=tp_group())
        return grad


class _ReduceFromRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x, group=tp_group())
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class _GatherFromRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(tp_size())]
        dist.all_gather(parts, x.contiguous(), group=tp_group())
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.chunk(tp_size(), dim=-1)[tp_rank()].contiguous()


def cut(full, dim):
    return nn.Parameter(full.chunk(tp_size(), dim=dim)[tp_rank()].clone().contiguous())


def seeded_weight(rows, cols, seed):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(rows, cols, generator=g) * (2.0 / (rows + cols)) ** 0.5


class ColumnParallelLinear(nn.Module):
    def __init__(self, d_in, d_out, seed, gather_output=False):
        super().__init__()
        if d_out % tp_size():
            raise ValueError(f"{d_out} output features over {tp_size()} ranks")
        self.weight = cut(seeded_weight(d_out, d_in, seed), 0)
        self.bias = nn.Parameter(torch.zeros(d_out // tp_size()))
        self.gather_output = gather_output

    def forward(self, x):
        out = F.linear(_CopyToRegion.apply(x), self.weight, self.bias)
        return _GatherFromRegion.apply(out) if self.gather_output else out


class RowParallelLinear(nn.Module):
    def __init__(self, d_in, d_out, seed):
        super().__init__()
        if d_in % tp_size():
            raise ValueError(f"{d_in} input features over {tp_size()} ranks")
        self.weight = cut(seeded_weight(d_out, d_in, seed), 1)
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        return _ReduceFromRegion.apply(F.linear(x, self.weight)) + self.bias


class ParallelMLP(nn.Module):
    def __init__(self, d, seed):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = ColumnParallelLinear(d, 4 * d, seed)
        self.down = RowParallelLinear(4 * d, d, seed + 1)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def clip_by_global_norm(model, max_norm):
    """Cut weights count once per rank, whole ones once in all."""
    cut_sq = torch.zeros((), device=next(model.parameters()).device)
    whole_sq = torch.zeros_like(cut_sq)
    for m in model.modules():
        for name, p in m.named_parameters(recurse=False):
            sharded = isinstance(m, ColumnParallelLinear) or (isinstance(m, RowParallelLinear) and name == "weight")
            (cut_sq if sharded else whole_sq).add_(p.grad.pow(2).sum())
    dist.all_reduce(cut_sq, group=tp_group())
    norm = (cut_sq + whole_sq).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for p in model.parameters():
        p.grad.mul_(scale)
    return norm


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    set_tp_group(dist.group.WORLD)
    device = torch.device("cuda", local)
    model = nn.Sequential(*[ParallelMLP(512, 10 * i) for i in range(4)],
                          ColumnParallelLinear(512, 64, 999, gather_output=True)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    data = torch.Generator().manual_seed(1)  # all ranks of the group see the same batch
    for step in range(500):
        x = torch.randn(32, 512, generator=data).to(device)
        loss = F.cross_entropy(model(x), x[:, :64].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        norm = clip_by_global_norm(model, 1.0)
        optimizer.step()
        if step % 50 == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f} grad norm {norm.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
