"""Step timers, token counts and memory, put together over ranks at log steps."""
import contextlib
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Timers:
    NAMES = ("data", "forward", "backward", "optimizer")

    def __init__(self, device):
        self.device = device
        self.spent = dict.fromkeys(self.NAMES, 0.0)

    @contextlib.contextmanager
    def section(self, name):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        t0 = time.perf_counter()
        yield
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.spent[name] += time.perf_counter() - t0

    def drain(self):
        values = [self.spent[n] for n in self.NAMES]
        self.spent = dict.fromkeys(self.NAMES, 0.0)
        return values


class Throughput:
    """Fixed layout on all ranks: [tokens, samples, *timers, peak memory]."""

    def __init__(self, device, timers):
        self.device, self.timers = device, timers
        self.tokens = self.samples = 0
        self.t0 = time.perf_counter()

    def count(self, lengths):
        self.tokens += int(lengths.sum())
        self.samples += len(lengths)

    def _peak(self):
        if self.device.type != "cuda":
            return 0.0
        peak = torch.cuda.max_memory_allocated(self.device) / 2**30
        torch.cuda.reset_peak_memory_stats(self.device)
        return peak

    def report(self):
        wall = time.perf_counter() - self.t0
        row = torch.tensor([self.tokens, self.samples, *self.timers.drain(), self._peak()],
                           dtype=torch.float64, device=self.device)
        rows = [torch.empty_like(row) for _ in range(dist.get_world_size())]
        dist.all_gather(rows, row)
        table = torch.stack(rows).cpu()
        self.tokens = self.samples = 0
        self.t0 = time.perf_counter()
        out = {"tokens/s": table[:, 0].sum().item() / wall, "samples/s": table[:, 1].sum().item() / wall,
               "peak GiB": table[:, -1].max().item()}
        for i, name in enumerate(Timers.NAMES):
            out[f"{name} s"] = table[:, 2 + i].mean().item()
        busy = table[:, 2:4].sum(1)
        out["slowest"] = int(busy.argmax())
        out["skew"] = (busy.max() / busy.median().clamp(min=1e-9)).item()
        return out


class Encoder(nn.Module):
    def __init__(self, vocab=2000, d=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.out = nn.Linear(d, 2)

    def forward(self, ids):
        pad = ids == 0
        h = self.body(self.emb(ids), src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        return self.out((h * keep).sum(1) / keep.sum(1))


def ragged_batch(gen, n=32, longest=128):
    lengths = torch.randint(8, longest + 1, (n,), generator=gen)
    ids = torch.randint(1, 2000, (n, int(lengths.max())), generator=gen)
    ids[torch.arange(ids.size(1)).expand(n, -1) >= lengths[:, None]] = 0
    return ids, (ids.sum(1) % 2), lengths


def show(step, stats):
    text = ", ".join(f"{k} {v:.3g}" for k, v in stats.items() if k != "slowest")
    print(f"step {step}: {text}")
    if stats["skew"] > 1.5:
        print(f"  rank {stats['slowest']} lags behind the others")


def main():
    local = int(os.environ.get("LOCAL_RANK", 0))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Encoder().to(device), device_ids=[local] if cuda else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    timers = Timers(device)
    meter = Throughput(device, timers)
    gen = torch.Generator().manual_seed(1 + rank)
    for step in range(1, 2001):
        with timers.section("data"):
            ids, y, lengths = ragged_batch(gen)
            ids, y = ids.to(device), y.to(device)
        with timers.section("forward"):
            loss = nn.functional.cross_entropy(model(ids), y)
        with timers.section("backward"):
            loss.backward()
        with timers.section("optimizer"):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        meter.count(lengths)
        if step % 50 == 0:
            stats = meter.report()
            if rank == 0:
                show(step, stats)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
