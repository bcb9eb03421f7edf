import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

from tiny_lm import LanguageModel, shard_tokens


@dataclass
class Plan:
    island: int = 8
    inner: int = 100
    rounds: int = 200
    batch: int = 8
    lr: float = 4e-4
    outer_lr: float = 0.7
    outer_momentum: float = 0.9
    max_drift: float = 50.0
    eval_rounds: int = 5
    out: str = "diloco"


class Islands:
    def __init__(self, size):
        rank, world = dist.get_rank(), dist.get_world_size()
        if world % size:
            raise SystemExit(f"{world} ranks cannot be split into islands of {size}")
        self.size, self.count = size, world // size
        self.index, self.local = divmod(rank, size)
        for i in range(self.count):
            g = dist.new_group(list(range(i * size, (i + 1) * size)))
            if i == self.index:
                self.inside = g
        for j in range(size):
            g = dist.new_group(list(range(j, world, size)))
            if j == self.local:
                self.peers = g
        self.leads = self.local == 0


class Tokens(IterableDataset):
    def __init__(self, split, part, parts, seq=513):
        self.split, self.part, self.parts, self.seq = split, part, parts, seq

    def __iter__(self):
        while True:
            for row in shard_tokens(self.split, self.part, self.parts):
                yield torch.as_tensor(row[:self.seq])


def mean_(tensors, group, n):
    flat = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(flat, group=group)
    flat /= n
    for t, part in zip(tensors, flat.split([t.numel() for t in tensors])):
        t.copy_(part.view_as(t))


class OuterNesterov:
    def __init__(self, params, plan, islands):
        self.params, self.plan, self.islands = params, plan, islands
        self.anchor = [p.detach().clone() for p in params]
        self.velocity = [torch.zeros_like(p) for p in params]
        self.refused = 0

    @torch.no_grad()
    def step(self):
        delta = [a - p for a, p in zip(self.anchor, self.params)]
        drift = torch.stack([d.float().norm() for d in delta]).norm()
        bad = torch.tensor([int(not math.isfinite(drift.item()) or drift.item() > self.plan.max_drift)], device="cuda")
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad.item():
            for p, a in zip(self.params, self.anchor):
                p.copy_(a)
            self.refused += 1
            if self.refused > 3:
                raise RuntimeError("outer step refused too often")
            return False
        mean_(delta, self.islands.peers, self.islands.count)
        for p, a, d, v in zip(self.params, self.anchor, delta, self.velocity):
            v.mul_(self.plan.outer_momentum).add_(d)
            a.add_(d + self.plan.outer_momentum * v, alpha=-self.plan.outer_lr)
            p.copy_(a)
        return True


@torch.no_grad()
def evaluate(model, islands, batches):
    """Each island scores its own part; leaders collect, rank 0 decides, all learn it."""
    model.eval()
    acc = torch.zeros(2, device="cuda")
    for ids in batches:
        ids = ids.cuda()
        logits = model(ids[:, :-1])
        acc[0] += F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
        acc[1] += ids[:, 1:].numel()
    model.train()
    dist.all_reduce(acc, group=islands.inside)
    verdict = torch.zeros(1, device="cuda")
    if islands.leads:
        rank0 = dist.get_rank() == 0
        table = [torch.empty_like(acc) for _ in range(islands.count)] if rank0 else None
        dist.gather(acc, table, dst=0, group=islands.peers)
        if rank0:
            stacked = torch.stack(table)
            verdict[0] = stacked[:, 0].sum() / stacked[:, 1].sum()
            print("islands", [round((r[0] / r[1]).item(), 3) for r in stacked], flush=True)
    dist.broadcast(verdict, 0)
    return verdict.item()


def save(plan, model, outer, done, best):
    if dist.get_rank() == 0:
        folder = Path(plan.out)
        folder.mkdir(parents=True, exist_ok=True)
        torch.save({"model": model.state_dict(), "velocity": outer.velocity, "round": done}, folder / "state.tmp")
        os.replace(folder / "state.tmp", folder / "state.pt")
        (folder / "plan.json").write_text(json.dumps({**asdict(plan), "best": best}))
    dist.barrier()


def main():
    plan = Plan()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank, world = dist.get_rank(), dist.get_world_size()
    islands = Islands(plan.island)
    torch.manual_seed(3)
    model = LanguageModel().cuda()
    params = list(model.parameters())
    for p in params:
        dist.broadcast(p.data, 0)
    inner = torch.optim.AdamW(params, lr=plan.lr, betas=(0.9, 0.95))
    outer = OuterNesterov(params, plan, islands)
    stream = iter(DataLoader(Tokens("train", rank, world), plan.batch))
    held_out = [b for _, b in zip(range(10), DataLoader(Tokens("val", rank, world), plan.batch))]
    best, stale, t0 = math.inf, 0, time.time()
    for rnd in range(1, plan.rounds + 1):
        for _ in range(plan.inner):
            ids = next(stream).cuda()
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            mean_([p.grad for p in params], islands.inside, islands.size)
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            inner.step()
            inner.zero_grad()
        accepted = outer.step()
        if not accepted:
            inner.state.clear()
            if rank == 0:
                print(f"round {rnd}: drift too large, went back", file=sys.stderr)
            continue
        if rnd % plan.eval_rounds == 0:
            value = evaluate(model, islands, held_out)
            better = value < best
            best, stale = (value, 0) if better else (best, stale + 1)
            if better:
                save(plan, model, outer, rnd, best)
            if rank == 0:
                print(f"round {rnd} val {value:.4f} best {best:.4f} {time.time() - t0:.0f}s", flush=True)
            if stale >= 10:
                break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
