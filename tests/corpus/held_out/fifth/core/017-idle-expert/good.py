import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn


@dataclass
class MoEArgs:
    dim: int = 512
    hidden: int = 2048
    tokens: int = 256
    steps: int = 100


class Expert(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.up = nn.Linear(args.dim, args.hidden)
        self.down = nn.Linear(args.hidden, args.dim)

    def forward(self, x):
        return self.down(nn.functional.silu(self.up(x)))


class ExpertParallelLayer(nn.Module):
    """One expert per rank; tokens go to their expert and come back."""

    def __init__(self, args, group=None):
        super().__init__()
        self.group = group
        self.world = dist.get_world_size(group)
        self.router = nn.Linear(args.dim, self.world, bias=False)
        self.expert = Expert(args)

    def _exchange(self, rows, out_splits, in_splits):
        out = rows.new_empty(sum(out_splits), rows.size(1))
        dist.all_to_all_single(out, rows.contiguous(), out_splits, in_splits, group=self.group)
        return out

    def forward(self, tokens):
        target = self.router(tokens).argmax(dim=-1)
        order = target.argsort()
        sent = torch.bincount(target, minlength=self.world)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent, group=self.group)
        sent, received = sent.tolist(), received.tolist()

        local = self._exchange(tokens[order], received, sent)
        processed = self.expert(local)
        back = self._exchange(processed, sent, received)
        result = torch.empty_like(tokens)
        result[order] = back
        return result


@torch.no_grad()
def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    args = MoEArgs()
    torch.manual_seed(0)
    layers = nn.ModuleList([ExpertParallelLayer(args) for _ in range(4)]).cuda().eval()
    rng = torch.Generator(device="cuda").manual_seed(dist.get_rank())
    total = torch.zeros((), device="cuda")
    for step in range(args.steps):
        x = torch.randn(args.tokens, args.dim, device="cuda", generator=rng)
        for layer in layers:
            x = x + layer(x)
        total += x.abs().mean()
    dist.all_reduce(total, op=dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"mean activation {total.item() / args.steps:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
