"""Object-detector trainer in the single-file style: RANK == -1 means no DDP."""
import math
import os
import time
from contextlib import contextmanager
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

LOCAL_RANK = int(os.getenv("LOCAL_RANK", -1))
RANK = int(os.getenv("RANK", -1))
WORLD_SIZE = int(os.getenv("WORLD_SIZE", 1))


@contextmanager
def torch_distributed_zero_first(local_rank):
    """Local leader enters first; its node mates come in when it has left."""
    if local_rank not in {-1, 0}:
        dist.barrier(device_ids=[local_rank])
    yield
    if local_rank == 0:
        dist.barrier(device_ids=[0])


class EMA:
    def __init__(self, model, decay=0.9999, tau=2000):
        self.ema = deepcopy(model).eval()
        self.updates = 0
        self.decay = lambda n: decay * (1 - math.exp(-n / tau))

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = self.decay(self.updates)
        for e, m in zip(self.ema.parameters(), model.parameters()):
            e.mul_(d).add_(m, alpha=1 - d)
        for e, m in zip(self.ema.buffers(), model.buffers()):
            e.copy_(m)


class EarlyStopping:
    def __init__(self, patience):
        self.best, self.best_epoch, self.patience = 0.0, 0, patience or float("inf")

    def __call__(self, epoch, fitness):
        if fitness >= self.best:
            self.best, self.best_epoch = fitness, epoch
        return epoch - self.best_epoch >= self.patience


def load_cached_labels(folder):
    cache = folder / "labels.cache"
    if not cache.exists():
        g = torch.Generator().manual_seed(0)
        torch.save((torch.randn(4096, 3, 32, 32, generator=g), torch.randint(0, 10, (4096,), generator=g)), cache)
    images, labels = torch.load(cache)
    return TensorDataset(images, labels)


@torch.no_grad()
def validate(net, loader, device):
    hit = seen = 0
    for im, y in loader:
        hit += (net(im.to(device)).argmax(1).cpu() == y).sum().item()
        seen += y.numel()
    return hit / seen


def train(device, save_dir, epochs=100, batch_size=64, patience=15, warmup_epochs=3.0):
    with torch_distributed_zero_first(LOCAL_RANK):
        dataset = load_cached_labels(save_dir)
    sampler = None if RANK == -1 else DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size // WORLD_SIZE, sampler=sampler, shuffle=sampler is None)
    val_loader = DataLoader(dataset, batch_size * 2) if RANK in {-1, 0} else None

    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.SiLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).to(device)
    ema = EMA(model) if RANK in {-1, 0} else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
    lf = lambda e: (1 - e / epochs) * 0.99 + 0.01
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lf)
    if RANK != -1:
        model = DDP(model, device_ids=[LOCAL_RANK], output_device=LOCAL_RANK)
    scaler = torch.amp.GradScaler("cuda", enabled=device.type == "cuda")
    stopper, stop = EarlyStopping(patience), False
    nb = len(loader)
    nw = max(round(warmup_epochs * nb), 100)

    t0 = time.time()
    for epoch in range(epochs):
        model.train()
        if RANK != -1:
            sampler.set_epoch(epoch)
        for i, (imgs, targets) in enumerate(loader):
            ni = i + nb * epoch
            if ni <= nw:
                for group in optimizer.param_groups:
                    group["lr"] = group["initial_lr"] * lf(epoch) * ni / nw
            with torch.autocast(device.type, enabled=device.type == "cuda"):
                loss = nn.functional.cross_entropy(model(imgs.to(device)), targets.to(device))
                if RANK != -1:
                    loss = loss * WORLD_SIZE
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if ema:
                ema.update(model.module if RANK != -1 else model)
        scheduler.step()

        if RANK in {-1, 0}:
            fitness = validate(ema.ema, val_loader, device)
            stop = stopper(epoch=epoch, fitness=fitness)
            ckpt = {"epoch": epoch, "ema": ema.ema.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(ckpt, save_dir / "last.pt")
            if stopper.best_epoch == epoch:
                torch.save(ckpt, save_dir / "best.pt")
            print(f"epoch {epoch}: fitness {fitness:.4f}")
        if RANK != -1:
            verdict = [stop if RANK == 0 else None]
            dist.broadcast_object_list(verdict, 0)
            stop = verdict[0]
        if stop:
            break
    if RANK in {-1, 0}:
        print(f"{epoch + 1} epochs in {(time.time() - t0) / 3600:.3f} hours")


def main():
    device = torch.device("cuda", max(LOCAL_RANK, 0))
    if RANK != -1:
        torch.cuda.set_device(LOCAL_RANK)
        dist.init_process_group("nccl", timeout=timedelta(hours=1))
    torch.manual_seed(1 + RANK)
    save_dir = Path(os.environ.get("RUN_DIR", "runs/train"))
    save_dir.mkdir(parents=True, exist_ok=True)
    train(device, save_dir)
    if RANK != -1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
