import os

import torch
import torch.distributed as dist


def exchange(mode, t):
    match mode:
        case "sum":
            dist.all_reduce(t)
        case "max":
            dist.all_reduce(t, op=dist.ReduceOp.MAX)
        case "first":
            dist.broadcast(t, src=0)
        case _:
            raise SystemExit(f"unknown mode {mode!r}")
    return t


def main():
    mode = os.environ.get("EXCHANGE", "sum")
    dist.init_process_group("gloo")
    t = exchange(mode, torch.tensor([float(dist.get_rank())]))
    match dist.get_rank():
        case 0:
            print("lead", t.item())
        case rank:
            print("rank", rank, t.item())
    dist.destroy_process_group()


main()
