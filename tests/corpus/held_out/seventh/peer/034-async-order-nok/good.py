from datetime import timedelta

import torch
import torch.distributed as dist


def spread(t):
    return dist.broadcast(t, src=0, async_op=True)


def total(t):
    return dist.all_reduce(t, async_op=True)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    plan = [(spread, torch.ones(64)), (total, torch.ones(8))]
    works = [go(t) for go, t in plan]
    for w in works:
        w.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
