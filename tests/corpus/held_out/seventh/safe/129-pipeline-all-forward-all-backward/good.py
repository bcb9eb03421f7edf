"""A plain pipeline: all forward passes, then all backward passes, stage by stage.

Each process is one stage. The first and the last stage hold a copy of the
embedding and keep the two copies equal over a group of their own.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Topology:
    def __init__(self):
        self.stage, self.stages = dist.get_rank(), dist.get_world_size()
        self.last_stage = self.stages - 1
        ends = sorted({0, self.last_stage})
        group = dist.new_group(ends)
        self.ends_group = group if self.stage in ends and len(ends) == 2 else None

    @property
    def first(self):
        return self.stage == 0

    @property
    def last(self):
        return self.stage == self.last_stage


class StageModule(nn.Module):
    def __init__(self, topo, vocab, dim, layers):
        super().__init__()
        self.topo = topo
        self.embed = nn.Embedding(vocab, dim) if topo.first or topo.last else None
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU()) for _ in range(layers)
        )

    def forward(self, x):
        if self.topo.first:
            x = self.embed(x)
        for layer in self.layers:
            x = x + layer(x)
        if self.topo.last:
            x = x @ self.embed.weight.T
        return x


class Schedule:
    def __init__(self, topo, module, shape):
        self.topo, self.module, self.shape = topo, module, shape
        self.inputs, self.outputs = [], []

    def receive_forward(self):
        x = torch.empty(self.shape)
        dist.recv(x, src=self.topo.stage - 1)
        return x.requires_grad_()

    def forward(self, tokens, target):
        x = tokens if self.topo.first else self.receive_forward()
        y = self.module(x)
        if self.topo.last:
            y = F.cross_entropy(y.flatten(0, 1), target.flatten())
        else:
            dist.send(y.detach(), dst=self.topo.stage + 1)
        self.inputs.append(x)
        self.outputs.append(y)

    def backward(self, scale):
        x, y = self.inputs.pop(0), self.outputs.pop(0)
        if self.topo.last:
            (y * scale).backward()
        else:
            grad = torch.empty(self.shape)
            dist.recv(grad, src=self.topo.stage + 1)
            y.backward(grad)
        if not self.topo.first:
            dist.send(x.grad.contiguous(), dst=self.topo.stage - 1)
        return y.detach() if self.topo.last else None

    def run(self, micro_batches):
        for tokens, target in micro_batches:
            self.forward(tokens, target)
        losses = [self.backward(1 / len(micro_batches)) for _ in micro_batches]
        if self.topo.last:
            return torch.stack(losses).mean()
        return torch.zeros(())


def copy_embedding(topo, module):
    """Start from the weights of the first stage."""
    if topo.ends_group is None:
        return
    with torch.no_grad():
        dist.broadcast(module.embed.weight, src=0, group=topo.ends_group)


def sum_embedding_grads(topo, module):
    if topo.ends_group is not None:
        dist.all_reduce(module.embed.weight.grad, group=topo.ends_group)


def global_norm(params):
    square = torch.stack([p.grad.pow(2).sum() for p in params]).sum()
    dist.all_reduce(square)
    return square.sqrt()


def micro_batches(step, count, batch, length, vocab):
    """Same numbers on every stage; only the ends look at them."""
    gen = torch.Generator().manual_seed(step)
    for _ in range(count):
        row = torch.randint(0, vocab, (batch, length + 1), generator=gen)
        yield row[:, :-1], row[:, 1:]


def save_stage(topo, module, folder, step):
    os.makedirs(folder, exist_ok=True)
    torch.save(module.state_dict(), os.path.join(folder, f"step{step}-stage{topo.stage}.pt"))
    dist.barrier()
    if topo.first:
        with open(os.path.join(folder, "latest"), "w", encoding="utf-8") as f:
            f.write(str(step))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--micro", type=int, default=4)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--length", type=int, default=16)
    p.add_argument("--vocab", type=int, default=64)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--out", default="stages")
    args = p.parse_args()

    dist.init_process_group("gloo")
    topo = Topology()
    torch.manual_seed(topo.stage)
    module = StageModule(topo, args.vocab, args.dim, layers=2)
    copy_embedding(topo, module)
    opt = torch.optim.SGD(module.parameters(), lr=0.1)
    params = list(module.parameters())

    for step in range(1, args.steps + 1):
        schedule = Schedule(topo, module, (args.batch, args.length, args.dim))
        data = list(micro_batches(step, args.micro, args.batch, args.length, args.vocab))
        loss = schedule.run(data)
        sum_embedding_grads(topo, module)
        norm = global_norm(params)
        dist.broadcast(loss, src=topo.last_stage)
        if not torch.isfinite(loss):
            raise SystemExit(f"loss {loss.item()} in step {step}")
        if norm > 1.0:
            for param in params:
                param.grad.mul_(1.0 / norm)
        opt.step()
        opt.zero_grad()
        if topo.last and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f}", flush=True)
        if step % 15 == 0:
            save_stage(topo, module, args.out, step)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
