"""Profile some steps on rank 0, with all ranks doing the same work."""
import argparse
import contextlib
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import ProfilerActivity, profile, record_function, schedule


class NullProfiler:
    def step(self):
        pass


def write_trace(folder):
    folder.mkdir(parents=True, exist_ok=True)

    def handler(prof):
        prof.export_chrome_trace(str(folder / f"trace-{prof.step_num}.json"))
        table = prof.key_averages().table(sort_by="self_device_time_total", row_limit=15)
        (folder / f"summary-{prof.step_num}.txt").write_text(table)
    return handler


@contextlib.contextmanager
def maybe_profile(enabled, folder):
    if not enabled:
        yield NullProfiler()
        return
    plan = schedule(wait=10, warmup=3, active=5, repeat=2)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=plan,
                 on_trace_ready=write_trace(folder), record_shapes=True, profile_memory=True) as prof:
        yield prof


class ConvNet(nn.Module):
    def __init__(self, width=64, classes=100):
        super().__init__()
        layers, c = [], 3
        for mult in (1, 2, 4, 8):
            layers += [nn.Conv2d(c, width * mult, 3, 2, 1, bias=False), nn.BatchNorm2d(width * mult), nn.ReLU()]
            c = width * mult
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(c, classes)

    def forward(self, x):
        return self.head(self.features(x))


def train_step(model, optimizer, x, y):
    with record_function("forward"):
        loss = nn.functional.cross_entropy(model(x), y)
    with record_function("backward"):
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def peak_memory_table(device):
    """Peak memory of each rank, as a list on every rank."""
    mine = torch.tensor([torch.cuda.max_memory_allocated(device) / 2**20], device=device)
    slots = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(slots, mine)
    return [round(s.item(), 1) for s in slots]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--profile", action="store_true")
    ap.add_argument("--trace-dir", type=Path, default=Path("traces"))
    ap.add_argument("--memory-history", action="store_true")
    ap.add_argument("--bf16-reduce", action="store_true")
    args = ap.parse_args()

    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    torch.manual_seed(rank)

    if args.memory_history and rank == 0:
        torch.cuda.memory._record_memory_history(max_entries=100_000)
    model = DDP(ConvNet().to(device), device_ids=[local], gradient_as_bucket_view=True)
    if args.bf16_reduce:
        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    running = torch.zeros((), device=device)
    with maybe_profile(args.profile and rank == 0, args.trace_dir) as prof:
        for step in range(1, args.steps + 1):
            x = torch.randn(args.batch, 3, 128, 128, device=device)
            y = torch.randint(0, 100, (args.batch,), device=device)
            running += train_step(model, optimizer, x, y)
            prof.step()
            if step % 50 == 0:
                dist.all_reduce(running, op=dist.ReduceOp.AVG)
                if rank == 0:
                    print(f"step {step}: mean loss {running.item() / 50:.4f}")
                running.zero_()

    table = peak_memory_table(device)
    if rank == 0:
        print("peak MiB by rank:", table)
        if args.memory_history:
            args.trace_dir.mkdir(parents=True, exist_ok=True)
            torch.cuda.memory._dump_snapshot(str(args.trace_dir / "memory.pickle"))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
