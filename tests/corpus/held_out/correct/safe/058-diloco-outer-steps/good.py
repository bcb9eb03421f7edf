"""DiLoCo-like training: many local steps, then one outer Nesterov step over ranks."""
import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


@dataclass
class Plan:
    inner_steps: int = 100
    outer_steps: int = 40
    inner_lr: float = 3e-4
    outer_lr: float = 0.7
    outer_momentum: float = 0.9
    warmup_outer: int = 2
    batch: int = 32


class OuterOptimizer:
    """Keeps the shared weights; the difference to the local ones is the gradient."""

    def __init__(self, params, lr, momentum):
        self.local = list(params)
        self.shared = [p.detach().clone().requires_grad_() for p in self.local]
        self.sgd = torch.optim.SGD(self.shared, lr=lr, momentum=momentum, nesterov=True)
        for s, p in zip(self.shared, self.local):
            dist.broadcast(s.data, src=0)
            p.data.copy_(s.data)

    @torch.no_grad()
    def step(self):
        handles = []
        for s, p in zip(self.shared, self.local):
            s.grad = s - p
            handles.append(dist.all_reduce(s.grad, async_op=True))
        world = dist.get_world_size()
        for s, handle in zip(self.shared, handles):
            handle.wait()
            s.grad /= world
        self.sgd.step()
        for s, p in zip(self.shared, self.local):
            p.copy_(s)

    def state_dict(self):
        return {"shared": [s.detach().cpu() for s in self.shared], "sgd": self.sgd.state_dict()}


class Lm(nn.Module):
    def __init__(self, vocab=512, d=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.GRU(d, d, 2, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


class Markov:
    """Every rank has a domain of its own: the same chain with another noise level."""

    def __init__(self, rank, vocab=512):
        shared = torch.Generator().manual_seed(123)
        self.table = torch.randint(0, vocab, (vocab,), generator=shared)
        self.noise = 0.05 + 0.02 * (rank % 5)
        self.gen = torch.Generator().manual_seed(rank)
        self.vocab = vocab

    def batch(self, n, t=48):
        rows = [torch.randint(0, self.vocab, (n,), generator=self.gen)]
        for _ in range(t):
            jump = torch.rand(n, generator=self.gen) < self.noise
            rand = torch.randint(0, self.vocab, (n,), generator=self.gen)
            rows.append(torch.where(jump, rand, self.table[rows[-1]]))
        ids = torch.stack(rows, 1)
        return ids[:, :-1], ids[:, 1:]


def inner_loop(model, optimizer, data, plan, device, lr):
    model.train()
    for g in optimizer.param_groups:
        g["lr"] = lr
    total = 0.0
    for _ in range(plan.inner_steps):
        x, y = data.batch(plan.batch)
        loss = nn.functional.cross_entropy(model(x.to(device)).flatten(0, 1), y.to(device).flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    return total / plan.inner_steps


@torch.no_grad()
def evaluate(model, data, device):
    model.eval()
    x, y = data.batch(128)
    loss = nn.functional.cross_entropy(model(x.to(device)).flatten(0, 1), y.to(device).flatten())
    dist.all_reduce(loss)
    return loss.item() / dist.get_world_size()


def main():
    plan = Plan()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    # islands run at unlike speed, so the outer step may wait for long
    dist.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(hours=1))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = Lm().to(device)
    outer = OuterOptimizer(model.parameters(), plan.outer_lr, plan.outer_momentum)
    inner = torch.optim.AdamW(model.parameters(), lr=plan.inner_lr)
    data = Markov(rank)
    for round_ in range(plan.outer_steps):
        lr = plan.inner_lr * min(1.0, (round_ + 1) / plan.warmup_outer)
        train = inner_loop(model, inner, data, plan, device, lr)
        outer.step()
        valid = evaluate(model, data, device)
        print(f"[{rank}] round {round_}: local train {train:.4f}", flush=True)
        if rank == 0:
            print(f"round {round_}: shared model {valid:.4f}", flush=True)
            if (round_ + 1) % 10 == 0:
                torch.save({"model": model.state_dict(), "outer": outer.state_dict()}, "diloco.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
