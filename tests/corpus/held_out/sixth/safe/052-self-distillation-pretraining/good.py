import argparse
import copy
import json
import math
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Sampler

from vits import build_backbone
from crops import MultiCropFolder, PlainFolder


class Prototypes(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, 2048), nn.GELU(), nn.Linear(2048, 256))
        self.last = nn.utils.parametrizations.weight_norm(nn.Linear(256, out, bias=False))

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


class Branch(nn.Module):
    def __init__(self, arch, out):
        super().__init__()
        self.backbone, self.head = build_backbone(arch), None
        self.head = Prototypes(self.backbone.dim, out)

    def forward(self, crops):
        sizes = sorted({c.shape[-1] for c in crops}, reverse=True)
        feats = [self.backbone(torch.cat([c for c in crops if c.shape[-1] == s])) for s in sizes]
        return self.head(torch.cat(feats))


class CentredLoss(nn.Module):
    def __init__(self, out, temp=0.1):
        super().__init__()
        self.temp, self.handle, self.total, self.rows = temp, None, None, 0
        self.register_buffer("centre", torch.zeros(1, out))

    @torch.no_grad()
    def settle(self, m=0.9):
        if self.handle is None:
            return
        self.handle.wait()
        mean = self.total / (self.rows * dist.get_world_size())
        self.centre.mul_(m).add_(mean, alpha=1 - m)
        self.handle = None

    @torch.no_grad()
    def launch(self, teacher):
        self.total, self.rows = teacher.sum(0, keepdim=True), teacher.size(0)
        self.handle = dist.all_reduce(self.total, async_op=True)

    @torch.no_grad()
    def targets(self, teacher, temp, mode):
        if mode == "centre":
            self.settle()
            out = ((teacher - self.centre) / temp).softmax(-1)
            self.launch(teacher)
            return out
        q = (teacher / temp).double()
        top = q.max()
        dist.all_reduce(top, op=dist.ReduceOp.MAX)
        q = (q - top).exp().T
        b = q.size(1) * dist.get_world_size()
        for _ in range(3):
            rows = q.sum(1, keepdim=True)
            dist.all_reduce(rows)
            q = q / rows.clamp(min=1e-30) / q.size(0)
            q = q / q.sum(0, keepdim=True).clamp(min=1e-30) / b
        return (q * b).T.float()

    def forward(self, student, targets, n_crops):
        s = (student / self.temp).log_softmax(-1).chunk(n_crops)
        t = targets.chunk(2)
        terms = [-(tt * s[j]).sum(-1).mean() for i, tt in enumerate(t) for j in range(n_crops) if i != j]
        return sum(terms) / len(terms)


class PaddedShard(Sampler):
    """Every rank gets ceil(n / world) indices; the surplus repeats the last one."""

    def __init__(self, n):
        rank, world = dist.get_rank(), dist.get_world_size()
        per = math.ceil(n / world)
        self.idx = [min(rank * per + i, n - 1) for i in range(per)]

    def __iter__(self):
        return iter(self.idx)

    def __len__(self):
        return len(self.idx)


@torch.no_grad()
def features(backbone, loader):
    feats, ids, labels = [], [], []
    for x, y, i in loader:
        feats.append(F.normalize(backbone(x.cuda()), dim=-1))
        ids.append(i.cuda())
        labels.append(y.cuda())
    out = []
    for t in (torch.cat(feats), torch.cat(ids), torch.cat(labels)):
        parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, t)
        out.append(torch.cat(parts))
    n = int(out[1].max()) + 1
    first = torch.zeros(n, dtype=torch.long, device="cuda")
    first[out[1]] = torch.arange(len(out[1]), device="cuda")
    return out[0][first], out[2][first]


def knn(backbone, train_loader, val_loader, k=20):
    backbone.eval()
    bank, bank_y = features(backbone, train_loader)
    probe, probe_y = features(backbone, val_loader)
    backbone.train()
    if dist.get_rank() != 0:
        return None
    hits = 0
    for lo in range(0, len(probe), 512):
        near = (probe[lo:lo + 512] @ bank.T).topk(k).indices
        hits += (bank_y[near].mode(1).values == probe_y[lo:lo + 512]).sum().item()
    return hits / len(probe)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", type=Path, required=True)
    ap.add_argument("--arch", default="vit_small")
    ap.add_argument("--epochs", type=int, default=100)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--mode", choices=["centre", "sinkhorn"], default="sinkhorn")
    ap.add_argument("--freeze", type=int, default=1)
    ap.add_argument("--knn-every", type=int, default=5)
    args = ap.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank = dist.get_rank()
    data = MultiCropFolder(args.data, small=6)
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, args.batch, sampler=sampler, drop_last=True, num_workers=8)
    evals = []
    for split in ("train", "val"):
        ds = PlainFolder(args.data, split)
        evals.append(DataLoader(ds, args.batch, sampler=PaddedShard(len(ds)), num_workers=4))
    student, out_dim = Branch(args.arch, 65536).cuda(), 65536
    teacher = copy.deepcopy(student).requires_grad_(False)
    ddp = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(student), device_ids=[torch.cuda.current_device()])
    teacher.load_state_dict(ddp.module.state_dict())
    loss_fn = CentredLoss(out_dim).cuda()
    optim = torch.optim.AdamW(ddp.parameters(), lr=5e-4, weight_decay=0.04)
    start, path = 0, args.out / "checkpoint.pth"
    args.out.mkdir(parents=True, exist_ok=True)
    have = torch.tensor([int(rank == 0 and path.exists())], device="cuda")
    dist.broadcast(have, 0)
    if have.item():
        blob = torch.load(path, map_location="cuda")
        ddp.module.load_state_dict(blob["student"])
        teacher.load_state_dict(blob["teacher"])
        loss_fn.load_state_dict(blob["loss"])
        optim.load_state_dict(blob["optim"])
        start = blob["epoch"]
    steps = len(loader)
    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        for i, crops in enumerate(loader):
            crops = [c.cuda(non_blocking=True) for c in crops]
            with torch.no_grad():
                t = teacher(crops[:2])
            loss = loss_fn(ddp(crops), loss_fn.targets(t, 0.04, args.mode), len(crops))
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            if not math.isfinite(mean.item()):
                print(f"rank {rank}: loss is {mean.item()}, stopping", flush=True)
                sys.exit(1)
            optim.zero_grad()
            loss.backward()
            if epoch < args.freeze:
                for p in ddp.module.head.last.parameters():
                    p.grad = None
            optim.step()
            m = 1 - 0.004 * (math.cos(math.pi * (epoch * steps + i) / (args.epochs * steps)) + 1) / 2
            with torch.no_grad():
                for a, b in zip(teacher.parameters(), ddp.module.parameters()):
                    a.lerp_(b, 1 - m)
        loss_fn.settle()
        acc = None
        if (epoch + 1) % args.knn_every == 0:
            acc = knn(teacher.backbone, *evals)
        if rank == 0:
            torch.save({"student": ddp.module.state_dict(), "teacher": teacher.state_dict(),
                        "loss": loss_fn.state_dict(), "optim": optim.state_dict(), "epoch": epoch + 1}, path)
            with open(args.out / "log.txt", "a") as f:
                f.write(json.dumps({"epoch": epoch, "loss": mean.item(), "knn": acc}) + "\n")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
