import math
import os
import time
from functools import partial
from typing import Callable, Optional, TypeVar, cast

import torch
import torch.distributed as dist

T = TypeVar("T")


def num_nodes() -> int:
    return dist.get_world_size() // int(os.environ["LOCAL_WORLD_SIZE"])


def in_turns(fn: Callable[[], T], width: Optional[int] = None, group=None) -> T:
    """Run ``fn`` once per rank with at most ``width`` ranks inside it at a time."""
    world = dist.get_world_size(group)
    me = dist.get_rank(group)
    width = width if width is not None else num_nodes()
    turns = math.ceil(world / width)
    result = None
    for turn in range(turns):
        if me % turns == turn:
            result = fn()
        dist.barrier(group)
    return cast(T, result)


def read_shard(path: str, rows: int) -> torch.Tensor:
    start = time.perf_counter()
    data = torch.load(path, mmap=True)[:rows].clone()
    print(f"rank {dist.get_rank()} read {path} in {time.perf_counter() - start:.1f}s", flush=True)
    return data


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank = dist.get_rank()
    shard = in_turns(partial(read_shard, f"/lustre/emb/shard-{rank:05d}.pt", 100_000))
    table = torch.nn.Embedding.from_pretrained(shard.cuda(), freeze=False)
    head = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(shard.shape[1], 1).cuda())
    opt = torch.optim.Adagrad(list(table.parameters()) + list(head.parameters()), lr=0.05)
    for _ in range(100):
        ids = torch.randint(0, len(shard), (512,), device="cuda")
        head(table(ids)).mean().backward()
        opt.step()
        opt.zero_grad()
    in_turns(lambda: torch.save(table.weight.data.cpu(), f"/lustre/out/shard-{rank:05d}.pt"), width=8)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
