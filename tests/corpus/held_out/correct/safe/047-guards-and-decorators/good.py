"""Context managers and decorators around the usual rank patterns."""
import contextlib
import functools
import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@contextlib.contextmanager
def process_group(backend, **kwargs):
    dist.init_process_group(backend, timeout=timedelta(minutes=10), **kwargs)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def leader_first(leader=0):
    """The body runs on the leader, then on the others."""
    is_leader = dist.get_rank() == leader
    if not is_leader:
        dist.barrier()
    yield is_leader
    if is_leader:
        dist.barrier()


@contextlib.contextmanager
def one_at_a_time():
    """The body runs rank by rank; world_size barriers on every rank."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for _ in range(rank):
        dist.barrier()
    yield
    for _ in range(world - rank):
        dist.barrier()


def on_leader(fn):
    """Only rank 0 calls `fn`; all ranks return its result or raise its error."""
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        box = [None, None]
        if dist.get_rank() == 0:
            try:
                box[0] = fn(*args, **kwargs)
            except Exception as err:
                box[1] = f"{type(err).__name__}: {err}"
        dist.broadcast_object_list(box, src=0)
        if box[1] is not None:
            raise RuntimeError(f"{fn.__name__} failed on rank 0: {box[1]}")
        return box[0]
    return wrapper


def averaged(fn):
    """The float that `fn` returns on each rank becomes the mean over ranks."""
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        value = torch.tensor([float(fn(*args, **kwargs))], dtype=torch.float64)
        dist.all_reduce(value)
        return value.item() / dist.get_world_size()
    return wrapper


def leader_only(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if dist.get_rank() == 0:
            fn(*args, **kwargs)
    return wrapper


@on_leader
def read_plan(path):
    file = Path(path)
    if not file.exists():
        return {"epochs": 5, "lr": 0.01, "width": 64}
    return json.loads(file.read_text())


@on_leader
def newest(folder):
    found = sorted(Path(folder).glob("epoch-*.pt"), key=lambda p: int(p.stem.split("-")[1]))
    return str(found[-1]) if found else None


@averaged
def epoch_loss(model, optimizer, gen, steps):
    total = 0.0
    for _ in range(steps):
        x = torch.randn(32, 4, generator=gen)
        loss = nn.functional.mse_loss(model(x), x.pow(2).sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


@leader_only
def save(model, folder, epoch):
    torch.save({"model": model.module.state_dict(), "epoch": epoch}, Path(folder) / f"epoch-{epoch}.pt")


def host_report():
    with one_at_a_time():
        print(f"rank {dist.get_rank()}: pid {os.getpid()}, {torch.get_num_threads()} threads", flush=True)


def main():
    folder = os.environ.get("OUT", "guards")
    with process_group("gloo"):
        host_report()
        with leader_first() as leader:
            if leader:
                os.makedirs(folder, exist_ok=True)
            cache = Path(folder) / "constants.pt"
            if leader and not cache.exists():
                torch.save(torch.arange(10), cache)
            constants = torch.load(cache)
        plan = read_plan(os.path.join(folder, "plan.json"))
        torch.manual_seed(int(constants.sum()))
        net = nn.Sequential(nn.Linear(4, plan["width"]), nn.ReLU(), nn.Linear(plan["width"], 1))
        start, path = 0, newest(folder)
        if path is not None:
            blob = torch.load(path)
            net.load_state_dict(blob["model"])
            start = blob["epoch"] + 1
        model = DDP(net)
        optimizer = torch.optim.SGD(model.parameters(), lr=plan["lr"])
        gen = torch.Generator().manual_seed(dist.get_rank())
        for epoch in range(start, plan["epochs"]):
            loss = epoch_loss(model, optimizer, gen, steps=100)
            save(model, folder, epoch)
            if dist.get_rank() == 0:
                print(f"epoch {epoch}: {loss:.4f}")


if __name__ == "__main__":
    main()
