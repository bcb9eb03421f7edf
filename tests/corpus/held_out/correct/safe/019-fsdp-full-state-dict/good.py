import argparse
import functools
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import (FullOptimStateDictConfig, FullStateDictConfig, MixedPrecision, ShardingStrategy,
                                    StateDictType)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

bf16 = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = nn.MultiheadAttention(d, h, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        q = self.n1(x)
        x = x + self.att(q, q, q, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class Encoder(nn.Module):
    def __init__(self, vocab=1000, d=512, depth=6, h=8, classes=5):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d, h) for _ in range(depth))
        self.out = nn.Linear(d, classes)

    def forward(self, ids):
        x = self.emb(ids)
        for b in self.blocks:
            x = b(x)
        return self.out(x.mean(1))


def full_state(model):
    return FSDP.state_dict_type(
        model, StateDictType.FULL_STATE_DICT,
        FullStateDictConfig(offload_to_cpu=True, rank0_only=True),
        FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=True))


def save(model, optim, epoch, path, rank):
    with full_state(model):
        weights = model.state_dict()
        moments = FSDP.optim_state_dict(model, optim)
    if rank == 0:
        torch.save({"model": weights, "optim": moments, "epoch": epoch}, path + ".tmp")
        os.replace(path + ".tmp", path)
        print(f"saved epoch {epoch}")
    dist.barrier(device_ids=[torch.cuda.current_device()])


def load_optimizer(model, optim, moments):
    """Rank 0 holds the full state, the others pass None and get their shards."""
    sharded = FSDP.scatter_full_optim_state_dict(moments, model, optim=optim)
    optim.load_state_dict(sharded)


def run_epoch(model, loader, optim, rank, training=True):
    model.train(training)
    sums = torch.zeros(3, device=rank_device())
    for ids, y in loader:
        ids, y = ids.to(rank_device()), y.to(rank_device())
        with torch.set_grad_enabled(training):
            out = model(ids)
            loss = nn.functional.cross_entropy(out.float(), y)
        if training:
            optim.zero_grad(set_to_none=True)
            loss.backward()
            model.clip_grad_norm_(1.0)
            optim.step()
        sums[0] += loss.detach() * y.numel()
        sums[1] += (out.argmax(1) == y).sum()
        sums[2] += y.numel()
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    if rank == 0:
        print(f"{'train' if training else 'valid'} loss {sums[0] / sums[2]:.4f} acc {sums[1] / sums[2]:.4f}")
    return (sums[0] / sums[2]).item()


def rank_device():
    return torch.device("cuda", torch.cuda.current_device())


def synthetic(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 1000, (n, 64), generator=g)
    return TensorDataset(ids, ids.sum(1) % 5)


def main(args):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    torch.manual_seed(0)

    train_set, val_set = synthetic(20000, 1), synthetic(2000, 2)
    sampler = DistributedSampler(train_set, drop_last=True)
    train_loader = DataLoader(train_set, args.batch_size, sampler=sampler)
    val_loader = DataLoader(val_set, args.batch_size, sampler=DistributedSampler(val_set, shuffle=False))

    model, start, moments = Encoder(), 0, None
    if args.resume:
        # weights are read by rank 0 only and spread by sync_module_states
        if rank == 0:
            blob = torch.load(args.resume, map_location="cpu", weights_only=False)
            model.load_state_dict(blob["model"])
            moments, start = blob["optim"], blob["epoch"] + 1
        marker = torch.tensor([start], device=rank_device())
        dist.broadcast(marker, src=0)
        start = int(marker.item())

    wrap = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    model = FSDP(model, auto_wrap_policy=wrap, mixed_precision=bf16, sharding_strategy=ShardingStrategy.FULL_SHARD,
                 device_id=torch.cuda.current_device(), sync_module_states=True, use_orig_params=True)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
    if args.resume:
        load_optimizer(model, optim, moments)

    best = float("inf")
    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        run_epoch(model, train_loader, optim, rank)
        val = run_epoch(model, val_loader, None, rank, training=False)
        if val < best:
            best = val
            save(model, optim, epoch, args.out, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--lr", type=float, default=3e-4)
    ap.add_argument("--out", default="fsdp-full.pt")
    ap.add_argument("--resume", default=None)
    main(ap.parse_args())
