from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    value: float


def op_for(metric):
    match metric.kind:
        case "mean":
            return ReduceOp.SUM
        case "floor":
            return ReduceOp.MIN
        case _:
            return ReduceOp.MAX


def publish(metrics):
    rank, world = dist.get_rank(), dist.get_world_size()
    table = {}
    for metric in metrics:
        cell = torch.tensor([metric.value])
        dist.reduce(cell, dst=0, op=op_for(metric))
        if metric.kind == "mean":
            cell /= world
        table[metric.name] = cell.item()
    return table if rank == 0 else {}


def main():
    dist.init_process_group("gloo")
    for step in range(10):
        row = publish([
            Metric("loss", "mean", 1.0 / (step + 1 + dist.get_rank())),
            Metric("mem_gb", "peak", 10.0 + dist.get_rank()),
            Metric("free_gb", "floor", 70.0 - dist.get_rank()),
        ])
        if row:
            print(step, row)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
