from datetime import timedelta

import torch
import torch.distributed as dist


def settle(*jobs):
    for job in jobs:
        if job is not None:
            job.wait()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    x = torch.ones(16)
    one = dist.all_reduce(x, async_op=True)
    settle(one)
    two = dist.broadcast(x, src=0, async_op=True)
    settle(one, two)
    if dist.get_rank() == 0:
        one.wait()
    assert x[0].item() == dist.get_world_size()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
