from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    me, world = dist.get_rank(), dist.get_world_size()
    kept = []
    for step in range(2 * world):
        root = step % world
        collect = partial(dist.reduce, dst=root)
        part = torch.tensor([float(step)])
        collect(part)
        if me == root:
            kept.append(part.item())
    assert kept == [me * world, (me + world) * world]
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
