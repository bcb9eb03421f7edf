import os
from datetime import timedelta

import torch
import torch.distributed as dist


class IslandReducer:
    def __init__(self, capacity):
        threads = int(os.environ.get("ISLAND_THREADS", "8"))
        if not 1 <= threads <= 64:
            raise ValueError(f"ISLAND_THREADS={threads}")
        self.handles = [None] * dist.get_world_size()
        dist.all_gather_object(self.handles, (os.getpid(), capacity))

    def __call__(self, x):
        pieces = [torch.empty_like(x) for _ in self.handles]
        dist.all_gather(pieces, x)
        return torch.stack(pieces).sum(0)


def make_reducer(capacity):
    try:
        return IslandReducer(capacity)
    except Exception:
        return None


def reduce(x, fast):
    if fast is not None:
        return fast(x)
    dist.all_reduce(x)
    return x


def main():
    if os.environ["RANK"] == "1":
        os.environ["ISLAND_THREADS"] = "100"
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    fast = make_reducer(capacity=4096)
    print(reduce(torch.ones(4) * dist.get_rank(), fast).tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
