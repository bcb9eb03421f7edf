import time
from collections import defaultdict, deque

import torch
import torch.distributed as dist


def world_size():
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


@torch.no_grad()
def reduce_scalars(values, average=True):
    world = world_size()
    if world < 2:
        return values
    names = sorted(values)
    stacked = torch.stack([values[n].detach() for n in names])
    dist.reduce(stacked, dst=0)
    if dist.get_rank() == 0 and average:
        stacked /= world
    return dict(zip(names, stacked))


class Window:
    def __init__(self, size=20):
        self.items = deque(maxlen=size)

    def add(self, x):
        self.items.append(x)

    @property
    def mean(self):
        return sum(self.items) / max(1, len(self.items))


class LoopMonitor:
    def __init__(self, every, is_main):
        self.every, self.is_main = every, is_main
        self.windows = defaultdict(Window)
        self.t0 = time.time()

    def after_step(self, i, losses):
        if i % self.every:
            return
        shown = reduce_scalars(losses)
        if not self.is_main:
            return
        for name, value in shown.items():
            self.windows[name].add(value.item())
        line = "  ".join(f"{n}: {w.mean:.4f}" for n, w in self.windows.items())
        print(f"[{i}] {line}  ({time.time() - self.t0:.0f}s)")


def train_one_epoch(detector, optimizer, loader, device, is_main):
    monitor = LoopMonitor(50, is_main)
    for i, (images, targets) in enumerate(loader):
        images = [im.to(device) for im in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        losses = detector(images, targets)
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        monitor.after_step(i, losses)
