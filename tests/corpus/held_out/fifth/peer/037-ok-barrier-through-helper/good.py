import time

import torch
import torch.distributed as dist


def barrier_with_spinner(limit=600.0):
    """Barrier which tells the user what it waits for."""
    work = dist.barrier(async_op=True)
    began, told = time.monotonic(), 0
    while not work.is_completed():
        waited = time.monotonic() - began
        if waited > limit:
            break
        if waited // 30 > told:
            told = waited // 30
            print(f"still waiting for other ranks ({waited:.0f}s)", flush=True)
        time.sleep(0.05)
    work.wait()
    return time.monotonic() - began


class Phase:
    def __init__(self):
        self.rank = dist.get_rank()
        self.idle = 0.0

    def close(self):
        if self.rank == 0:
            self.idle += barrier_with_spinner()
        else:
            dist.barrier()


def simulate(rank, episodes):
    gen = torch.Generator().manual_seed(rank)
    return torch.stack([torch.rand(4, generator=gen).sum() for _ in range(episodes)])


def main():
    dist.init_process_group("gloo")
    phase = Phase()
    for r in range(3):
        returns = simulate(phase.rank, 10 * (phase.rank + 1))
        phase.close()
        best = returns.max()
        dist.all_reduce(best, op=dist.ReduceOp.MAX)
        if phase.rank == 0:
            print(r, best.item(), f"idle {phase.idle:.1f}s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
