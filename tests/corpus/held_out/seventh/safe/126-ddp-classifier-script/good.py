"""Train a small image classifier on several processes.

    torchrun --nproc-per-node 4 train.py --out runs/a --epochs 20
"""

import argparse
import glob
import os
import random
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default="runs/default")
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--resume", default="auto", help="auto, none or a path")
    p.add_argument("--patience", type=int, default=3)
    p.add_argument("--keep", type=int, default=2)
    p.add_argument("--max-skips", type=int, default=20)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class Shapes(Dataset):
    """Noise with one bright square; the class is the quarter it lies in."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(self.seed * 1_000_003 + i)
        image = torch.randn(1, 16, 16, generator=gen) * 0.3
        label = i % 4
        top, left = divmod(label, 2)
        image[0, top * 8 + 2 : top * 8 + 6, left * 8 + 2 : left * 8 + 6] += 1.0
        return image, label


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(128, 4),
    )


def setup():
    use_cuda = torch.cuda.is_available()
    local_rank = int(os.environ["LOCAL_RANK"])
    if use_cuda:
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if use_cuda else "gloo")
    return torch.device("cuda", local_rank) if use_cuda else torch.device("cpu")


def is_main():
    return dist.get_rank() == 0


def log(*args):
    if is_main():
        print(time.strftime("%H:%M:%S"), *args, flush=True)


def from_main(value):
    box = [value if is_main() else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def find_resume(args):
    if args.resume == "none":
        return None
    if args.resume != "auto":
        return args.resume
    newest = None
    if is_main():
        found = sorted(glob.glob(os.path.join(args.out, "epoch_*.pt")))
        if found:
            newest = found[-1]
    return from_main(newest)


def save(args, epoch, model, opt, best):
    if is_main():
        path = os.path.join(args.out, f"epoch_{epoch:04d}.pt")
        state = {"epoch": epoch, "best": best}
        state["model"], state["opt"] = model.module.state_dict(), opt.state_dict()
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)
        for old in sorted(glob.glob(os.path.join(args.out, "epoch_*.pt")))[: -args.keep]:
            try:
                os.remove(old)
            except OSError as exc:
                log(f"could not remove {old}: {exc}")
    dist.barrier()


def train_epoch(args, model, opt, loader, device):
    model.train()
    totals, skipped = torch.zeros(2, device=device), 0
    for step, (image, label) in enumerate(loader):
        image, label = image.to(device), label.to(device)
        loss = F.cross_entropy(model(image), label)
        bad = (~torch.isfinite(loss.detach())).float()
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad.item() > 0:
            skipped += 1
            opt.zero_grad(set_to_none=True)
            if skipped > args.max_skips:
                raise RuntimeError(f"{skipped} non-finite batches, giving up")
            continue
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        totals += torch.stack([loss.detach() * len(label), loss.new_tensor(len(label))])
        if step % 50 == 0:
            log(f"  step {step} loss {loss.item():.4f}")
    dist.all_reduce(totals)
    return (totals[0] / totals[1].clamp(min=1)).item()


@torch.no_grad()
def evaluate(model, loader, device):
    net = model.module
    net.eval()
    hits = torch.zeros(2, device=device)
    for image, label in loader:
        guess = net(image.to(device)).argmax(dim=1).cpu()
        hits[0] += (guess == label).sum()
        hits[1] += len(label)
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def main():
    args = parse_args()
    device = setup()
    random.seed(args.seed + dist.get_rank())
    torch.manual_seed(args.seed)
    if is_main():
        os.makedirs(args.out, exist_ok=True)

    train_set, val_set = Shapes(2048, seed=1), Shapes(256, seed=2)
    sampler = DistributedSampler(train_set, shuffle=True, seed=args.seed, drop_last=True)
    loader = DataLoader(train_set, args.batch_size, sampler=sampler, drop_last=True)
    val_loader = DataLoader(val_set, 64, sampler=DistributedSampler(val_set, shuffle=False))
    model = build_model().to(device)
    model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)

    start, best, stale = 0, 0.0, 0
    path = find_resume(args)
    if path is not None:
        state = torch.load(path, map_location=device)
        model.module.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        start, best = state["epoch"] + 1, state["best"]
        log(f"resumed {path}")
        dist.barrier()

    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(args, model, opt, loader, device)
        accuracy = evaluate(model, val_loader, device)
        stop = False
        if is_main():
            stale = 0 if accuracy > best else stale + 1
            stop = stale >= args.patience
        best = max(best, accuracy)
        log(f"epoch {epoch} loss {loss:.4f} accuracy {accuracy:.3f} best {best:.3f}")
        save(args, epoch, model, opt, best)
        if from_main(stop):
            log("no progress, stopping")
            break

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
