"""A small gradient reducer: buckets, async all-reduce, handles kept in a dict."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class BucketReducer:
    """Starts bucket i only after bucket i-1, whatever order gradients get ready in."""

    def __init__(self, module, bucket_mb=4.0):
        self.world = dist.get_world_size()
        self.buckets, self.home = [], {}
        self._split([p for p in module.parameters() if p.requires_grad], int(bucket_mb * 2**20))
        self.handles, self.flats = {}, {}
        self.enabled = True
        self._reset()
        for p in self.home:
            p.register_post_accumulate_grad_hook(self._on_grad)
        for p in module.parameters():
            dist.broadcast(p.data, src=0)
        for b in module.buffers():
            dist.broadcast(b, src=0)

    def _split(self, params, limit):
        current, size = [], 0
        for p in reversed(params):
            if current and size + p.numel() * p.element_size() > limit:
                self.buckets.append(current)
                current, size = [], 0
            current.append(p)
            size += p.numel() * p.element_size()
        if current:
            self.buckets.append(current)
        for i, bucket in enumerate(self.buckets):
            for p in bucket:
                self.home[p] = i

    def _reset(self):
        self.missing = [len(b) for b in self.buckets]
        self.next_to_launch = 0

    def _on_grad(self, p):
        if not self.enabled:
            return
        self.missing[self.home[p]] -= 1
        while self.next_to_launch < len(self.buckets) and self.missing[self.next_to_launch] <= 0:
            self._launch(self.next_to_launch)
            self.next_to_launch += 1

    def _launch(self, i):
        parts = [(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in self.buckets[i]]
        self.flats[i] = torch.cat(parts)
        self.handles[i] = dist.all_reduce(self.flats[i], async_op=True)

    def finish(self):
        # buckets whose parameters got no gradient here are still sent, in order
        while self.next_to_launch < len(self.buckets):
            self._launch(self.next_to_launch)
            self.next_to_launch += 1
        for i, handle in self.handles.items():
            handle.wait()
            at = 0
            for p in self.buckets[i]:
                piece = self.flats[i][at:at + p.numel()].view_as(p) / self.world
                at += p.numel()
                if p.grad is None:
                    p.grad = piece.clone()
                else:
                    p.grad.copy_(piece)
        self.handles.clear()
        self.flats.clear()
        self._reset()


class Routed(nn.Module):
    """One of two heads by the parity of the batch index: unused weights do occur."""

    def __init__(self, d=256):
        super().__init__()
        self.trunk = nn.Sequential(*[nn.Sequential(nn.Linear(d, d), nn.GELU()) for _ in range(6)])
        self.heads = nn.ModuleList(nn.Linear(d, 8) for _ in range(2))

    def forward(self, x, which):
        return self.heads[which](self.trunk(x))


def metrics_async(values, device):
    """Start one reduction per metric; the caller waits when it prints."""
    pending = {}
    for name in sorted(values):
        t = torch.tensor([values[name]], device=device)
        pending[name] = (dist.all_reduce(t, async_op=True), t)
    return pending


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    model = Routed().to(device)
    reducer = BucketReducer(model, bucket_mb=0.5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for step in range(1000):
        optimizer.zero_grad(set_to_none=True)
        reducer.enabled = False
        for micro in range(3):
            x = torch.randn(64, 256, device=device)
            reducer.enabled = micro == 2
            out = model(x, (step + rank) % 2)
            loss = nn.functional.cross_entropy(out, x[:, :8].argmax(1)) / 3
            loss.backward()
        reducer.finish()
        optimizer.step()
        if step % 100 == 0:
            pending = metrics_async({"loss": 3 * loss.item(), "peak": out.abs().max().item()}, device)
            shown = {}
            for name, (handle, t) in pending.items():
                handle.wait()
                shown[name] = t.item() / world
            if rank == 0:
                print(step, shown)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
