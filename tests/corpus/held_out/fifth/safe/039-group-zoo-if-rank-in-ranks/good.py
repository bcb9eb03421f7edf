from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Dict, List

import torch
import torch.distributed as dist


@dataclass
class Group:
    ranks: List[int]
    nccl: dist.ProcessGroup
    gloo: dist.ProcessGroup


_GROUPS: Dict[str, Group] = {}


def _layout(world: int, tp: int, cp: int, pp: int) -> torch.Tensor:
    dp = world // (tp * cp * pp)
    return torch.arange(world).reshape(pp, dp, cp, tp)


def _keep(name: str, ranks: List[int]) -> None:
    nccl = dist.new_group(ranks, backend="nccl")
    gloo = dist.new_group(ranks, backend="gloo")
    if dist.get_rank() in ranks:
        assert name not in _GROUPS, f"{name} set twice"
        _GROUPS[name] = Group(ranks, nccl, gloo)


def initialize(tp: int, cp: int, pp: int) -> None:
    world = dist.get_world_size()
    if world % (tp * cp * pp):
        raise RuntimeError(f"{world} ranks do not fit tp={tp} cp={cp} pp={pp}")
    grid = _layout(world, tp, cp, pp)
    for i in range(grid.size(0)):
        for j in range(grid.size(1)):
            for k in range(grid.size(2)):
                _keep("tp", grid[i, j, k].tolist())
            for t in range(grid.size(3)):
                _keep("cp", grid[i, j, :, t].tolist())
        for k in range(grid.size(2)):
            for t in range(grid.size(3)):
                _keep("dp", grid[i, :, k, t].tolist())
    for column in grid.flatten(1).t():
        _keep("pp", column.tolist())


def get(name: str) -> Group:
    return _GROUPS[name]


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    initialize(tp=int(os.environ.get("TP", 2)), cp=1, pp=int(os.environ.get("PP", 1)))
    grad = torch.ones(16, device="cuda") * dist.get_rank()
    dist.all_reduce(grad, group=get("dp").nccl)
    names = [None] * len(get("tp").ranks)
    dist.all_gather_object(names, os.uname().nodename, group=get("tp").gloo)
    if len(set(names)) > 1:
        print(f"rank {dist.get_rank()}: tensor parallel group spans nodes {names}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
