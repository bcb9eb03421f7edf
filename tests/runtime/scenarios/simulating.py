"""Every operation of torch.distributed once: run by real gloo ranks and by simulated ones, then compared."""

from __future__ import annotations

import json
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from .parts import say, start_gloo


def full(value: float, size: int = 2) -> Tensor:
    return torch.full((size,), float(value))


def reductions(rank: int, size: int) -> dict[str, Any]:
    """all_reduce and reduce, by operation and type."""
    found: dict[str, Any] = {}
    for name in ("SUM", "PRODUCT", "MIN", "MAX"):
        tensor = full(rank + 1)
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
        found[name] = tensor.tolist()
    for name in ("BAND", "BOR", "BXOR"):
        tensor = torch.tensor([rank + 5])
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
        found[name] = tensor.tolist()
    tensor = full(rank)
    dist.reduce(tensor, 1)
    found["reduce"] = tensor.tolist() if rank == 1 else None
    begun = [full(rank), full(2 * rank)]
    handles = [dist.all_reduce(each, async_op=True) for each in begun]
    for handle in reversed(handles):
        handle.wait()
    found["async"] = [each.tolist() for each in begun]
    return found


def exchanges(rank: int, size: int) -> dict[str, Any]:
    """Everything that moves tensors without reducing them."""
    found: dict[str, Any] = {}
    many = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(many, full(rank))
    found["all_gather"] = [each.tolist() for each in many]
    one = torch.zeros(2 * size)
    dist.all_gather_into_tensor(one, full(rank))
    found["all_gather_into_tensor"] = one.tolist()
    tensor = full(rank)
    dist.broadcast(tensor, 1)
    found["broadcast"] = tensor.tolist()
    parts = [torch.zeros(2) for _ in range(size)] if rank == 1 else None
    dist.gather(full(rank), parts, dst=1)
    found["gather"] = None if parts is None else [each.tolist() for each in parts]
    tensor = torch.zeros(2)
    dist.scatter(tensor, [full(each) for each in range(size)] if rank == 0 else None, src=0)
    found["scatter"] = tensor.tolist()
    tensor = torch.zeros(size)
    dist.all_to_all_single(tensor, torch.arange(float(size)) + 10 * rank)
    found["all_to_all_single"] = tensor.tolist()
    sizes = [rank + other for other in range(size)]
    tensor = torch.zeros(sum(sizes))
    dist.all_to_all_single(tensor, torch.arange(float(sum(sizes))) + 100 * rank, sizes, sizes)
    found["uneven all_to_all_single"] = tensor.tolist()
    return found


def objects(rank: int, size: int) -> dict[str, Any]:
    """Object collectives."""
    found: dict[str, Any] = {}
    gathered: list[Any] = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    found["all_gather_object"] = gathered
    shared: list[Any] = [{"root": rank}, "x" * rank]
    dist.broadcast_object_list(shared, 1)
    found["broadcast_object_list"] = shared
    scattered: list[Any] = [None]
    dist.scatter_object_list(scattered, [f"for {each}" for each in range(size)] if rank == 0 else None, 0)
    found["scatter_object_list"] = scattered
    collected: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object(rank, collected, 0)
    found["gather_object"] = collected
    return found


def transfers(rank: int, size: int) -> dict[str, Any]:
    """Point to point: a ring, tags, any source."""
    found: dict[str, Any] = {}
    received = torch.zeros(2)
    after, before = (rank + 1) % size, (rank - 1) % size
    operations = [
        dist.P2POp(dist.isend, full(rank), after),
        dist.P2POp(dist.irecv, received, before),
    ]
    for handle in dist.batch_isend_irecv(operations):
        handle.wait()
    found["ring"] = received.tolist()
    if rank == 0:
        dist.send(full(7), 1, tag=1)
        dist.recv(received, 1, tag=2)
    elif rank == 1:
        dist.recv(received, 0, tag=1)
        dist.send(full(8), 0, tag=2)
    found["tags"] = received.tolist()
    if rank == 0:
        found["sources"] = sorted(dist.recv(received) for _ in range(size - 1))
    else:
        dist.send(full(rank), 0)
    return found


def groups(rank: int, size: int) -> dict[str, Any]:
    """Sub-groups: results and who is in."""
    first = dist.new_group([0, 1])
    second = dist.new_group(list(range(1, size)))
    found: dict[str, Any] = {"ranks": [dist.get_rank(first), dist.get_rank(second)]}
    for name, group in (("first", first), ("second", second)):
        tensor = full(rank + 1)
        if dist.get_rank(group) >= 0:
            dist.all_reduce(tensor, group=group)
            found[name] = [tensor.tolist(), dist.get_process_group_ranks(group)]
    dist.barrier()
    dist.monitored_barrier()
    return found


def models(rank: int, size: int) -> dict[str, Any]:
    """DistributedDataParallel, and functional collectives."""
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((3, 4), float(rank + step))).sum().backward()
        optimizer.step()
    weights = [round(each.sum().item(), 3) for each in model.parameters()]
    group = dist.group.WORLD
    summed = functional.all_reduce(full(rank), "sum", group) + 0
    gathered = functional.all_gather_tensor(full(rank), 0, group) + 0
    return {"ddp": weights, "all_reduce": summed.tolist(), "all_gather": gathered.tolist()}


SUITES = {each.__name__: each for each in (reductions, exchanges, objects, transfers, groups, models)}


def every_operation() -> None:
    rank = start_gloo()
    for name, suite in SUITES.items():
        say(name, json.dumps(suite(rank, dist.get_world_size())))
    dist.destroy_process_group()
