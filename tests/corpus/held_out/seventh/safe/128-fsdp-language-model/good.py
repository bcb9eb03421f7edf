"""Sharded training of a tiny language model with accumulation and full checkpoints."""

import argparse
import functools
import math
import os
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    StateDictType,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class TinyLM(nn.Module):
    def __init__(self, vocab, dim=128, heads=4, depth=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        n = tokens.shape[1]
        mask = torch.full((n, n), -torch.inf, device=tokens.device).triu(1)
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


class Documents:
    """Rows of this rank; the files are not equally long."""

    def __init__(self, rank, vocab, length, batch):
        self.gen = torch.Generator().manual_seed(rank)
        self.vocab, self.length, self.batch = vocab, length, batch
        self.batches = 60 + 7 * (rank % 3)

    def __iter__(self):
        for _ in range(self.batches):
            rows = torch.randint(1, self.vocab, (self.batch, self.length + 1), generator=self.gen)
            lengths = torch.randint(2, self.length, (self.batch,), generator=self.gen)
            for row, n in zip(rows, lengths):
                row[n:] = 0
            yield rows


def common_length(n):
    t = torch.tensor([n], device="cuda")
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return int(t.item())


def decide_on_zero(flag):
    t = torch.tensor([int(flag)], device="cuda")
    dist.broadcast(t, src=0)
    return bool(t.item())


def open_tracker(args):
    """A tracker that does not come up must not end the run."""
    if dist.get_rank() != 0 or not args.track:
        return None
    try:
        import wandb

        return wandb.init(project=args.track, config=vars(args))
    except Exception as exc:
        print(f"no tracking: {exc}", flush=True)
        return None


def save(model, opt, step, path):
    with FSDP.state_dict_type(
        model,
        StateDictType.FULL_STATE_DICT,
        FullStateDictConfig(offload_to_cpu=True, rank0_only=True),
        FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=True),
    ):
        weights = model.state_dict()
        moments = FSDP.optim_state_dict(model, opt)
    if dist.get_rank() == 0:
        torch.save({"step": step, "model": weights, "opt": moments}, path + ".part")
        os.replace(path + ".part", path)
    dist.barrier()


def micro_loss(model, rows, all_tokens):
    """Sum over our tokens divided by the tokens of the whole step, times world."""
    logits = model(rows[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), ignore_index=0, reduction="sum")
    return loss * dist.get_world_size() / all_tokens


def train(args, model, opt):
    rank = dist.get_rank()
    data = Documents(rank, args.vocab, args.length, args.batch)
    steps = common_length(data.batches) // args.accumulate
    tracker, source, began = open_tracker(args), iter(data), time.monotonic()
    for step in range(1, steps + 1):
        micro = [next(source).cuda() for _ in range(args.accumulate)]
        tokens = torch.stack([(rows[:, 1:] != 0).sum() for rows in micro]).sum()
        dist.all_reduce(tokens)
        total = torch.zeros((), device="cuda")
        for i, rows in enumerate(micro):
            last = i + 1 == len(micro)
            with nullcontext() if last else model.no_sync():
                loss = micro_loss(model, rows, tokens)
                loss.backward()
            total += loss.detach()
        norm = model.clip_grad_norm_(1.0)
        if math.isfinite(norm.item()):
            opt.step()
        elif rank == 0:
            print(f"step {step}: gradient norm {norm.item()}, no update", flush=True)
        opt.zero_grad(set_to_none=True)

        if step % args.log_every == 0:
            dist.all_reduce(total)
            if tracker is not None:
                tracker.log({"loss": total.item() / dist.get_world_size(), "norm": norm.item()})
        late = decide_on_zero(time.monotonic() - began > args.minutes * 60)
        if late or step % args.save_every == 0:
            save(model, opt, step, os.path.join(args.out, f"step{step}.pt"))
        if late:
            break
    if tracker is not None:
        tracker.finish()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=512)
    p.add_argument("--length", type=int, default=64)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--accumulate", type=int, default=4)
    p.add_argument("--log-every", type=int, default=5)
    p.add_argument("--save-every", type=int, default=10)
    p.add_argument("--minutes", type=float, default=30.0)
    p.add_argument("--out", default=".")
    p.add_argument("--track", default="")
    args = p.parse_args()

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    model = FSDP(
        TinyLM(args.vocab),
        auto_wrap_policy=policy,
        device_id=torch.cuda.current_device(),
        use_orig_params=True,
    )
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    train(args, model, opt)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
