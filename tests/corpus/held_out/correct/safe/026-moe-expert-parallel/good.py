"""Top-1 mixture of experts with experts spread over the ranks."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class AllToAllRows(torch.autograd.Function):
    """Uneven row exchange; backward swaps the two split lists."""

    @staticmethod
    def forward(ctx, rows, send, recv, group):
        ctx.send, ctx.recv, ctx.group = send, recv, group
        out = rows.new_empty(sum(recv), rows.size(1))
        dist.all_to_all_single(out, rows.contiguous(), recv, send, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(sum(ctx.send), grad.size(1))
        dist.all_to_all_single(out, grad.contiguous(), ctx.send, ctx.recv, group=ctx.group)
        return out, None, None, None


class ExpertParallelMoE(nn.Module):
    def __init__(self, dim, hidden, experts, group):
        super().__init__()
        self.group, self.world = group, dist.get_world_size(group)
        assert experts % self.world == 0
        self.experts, self.local = experts, experts // self.world
        self.router = nn.Linear(dim, experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(self.local, dim, hidden) * dim ** -0.5)
        self.w2 = nn.Parameter(torch.randn(self.local, hidden, dim) * hidden ** -0.5)

    def forward(self, x):
        probs = F.softmax(self.router(x).float(), -1)
        gate, which = probs.max(-1)
        load = F.one_hot(which, self.experts).float().mean(0)
        aux = self.experts * (load * probs.mean(0)).sum()

        order = which.argsort(stable=True)
        counts = torch.bincount(which, minlength=self.experts)
        incoming = torch.empty_like(counts)
        dist.all_to_all_single(incoming, counts, group=self.group)
        send = counts.view(self.world, self.local).sum(1).tolist()
        recv = incoming.view(self.world, self.local).sum(1).tolist()

        rows = AllToAllRows.apply(x[order], send, recv, self.group)
        label = torch.arange(self.local, device=x.device).repeat(self.world)
        label = label.repeat_interleave(incoming)
        rows = self.run_experts(rows, label)
        back = AllToAllRows.apply(rows, recv, send, self.group)

        out = torch.empty_like(back)
        out = out.index_copy(0, order, back)
        return out * gate.unsqueeze(-1), aux

    def run_experts(self, rows, label):
        """Touches each local expert's weights even when no row came for it."""
        result = rows.new_zeros(rows.shape)
        for e in range(self.local):
            at = (label == e).nonzero(as_tuple=True)[0]
            y = F.gelu(rows[at] @ self.w1[e]) @ self.w2[e]
            result = result.index_add(0, at, y)
        return result


class Net(nn.Module):
    def __init__(self, dim, experts, group):
        super().__init__()
        self.inp = nn.Linear(32, dim)
        self.moe = nn.ModuleList(ExpertParallelMoE(dim, 4 * dim, experts, group) for _ in range(2))
        self.out = nn.Linear(dim, 32)

    def forward(self, x):
        h, aux = self.inp(x), 0.0
        for layer in self.moe:
            y, a = layer(h)
            h, aux = h + y, aux + a
        return self.out(h), aux

    def shared_parameters(self):
        return [p for n, p in self.named_parameters() if not n.endswith((".w1", ".w2"))]

    def expert_parameters(self):
        return [p for n, p in self.named_parameters() if n.endswith((".w1", ".w2"))]


@torch.no_grad()
def sync_gradients(model, world):
    """Shared weights are averaged; an expert already sums over all senders."""
    for p in model.shared_parameters():
        dist.all_reduce(p.grad)
        p.grad /= world
    for p in model.expert_parameters():
        p.grad /= world


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    model = Net(128, 4 * world, dist.group.WORLD).to(device)
    with torch.no_grad():
        for p in model.shared_parameters():
            dist.broadcast(p, src=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(500):
        x = torch.randn(256, 32, device=device)
        y, aux = model(x)
        loss = F.mse_loss(y, x.roll(1, dims=1)) + 0.01 * aux
        optimizer.zero_grad()
        loss.backward()
        sync_gradients(model, world)
        optimizer.step()
        if step % 50 == 0:
            shown = loss.detach().clone()
            dist.reduce(shown, dst=0)
            if rank == 0:
                print(f"step {step} loss {shown.item() / world:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
