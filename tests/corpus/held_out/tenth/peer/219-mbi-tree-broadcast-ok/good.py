from datetime import timedelta

import torch
import torch.distributed as dist


def tree_broadcast(t):
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        dist.recv(t, src=(rank - 1) // 2)
    for child in (2 * rank + 1, 2 * rank + 2):
        if child < size:
            dist.send(t, dst=child)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    t = torch.full((3,), 7.0 if dist.get_rank() == 0 else 0.0)
    tree_broadcast(t)
    assert t[0].item() == 7
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
