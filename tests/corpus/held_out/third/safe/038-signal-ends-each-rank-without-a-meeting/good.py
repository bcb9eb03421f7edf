import os
import signal
from datetime import timedelta

import torch
import torch.distributed as dist


class Termination:
    def __init__(self, note):
        self.note = note
        for which in (signal.SIGTERM, signal.SIGINT):
            signal.signal(which, self.leave)

    def leave(self, signum, frame):
        os.write(2, f"{self.note}: signal {signum}\n".encode())
        os._exit(128 + signum)


def train(steps):
    weight = torch.zeros(5)
    for step in range(steps):
        grad = torch.ones(5) / (1 + step)
        dist.all_reduce(grad)
        weight -= 0.1 * grad
    return weight


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    Termination(f"rank {dist.get_rank()}")
    weight = train(6)
    low, high = weight.clone(), weight.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    assert torch.equal(low, high)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
