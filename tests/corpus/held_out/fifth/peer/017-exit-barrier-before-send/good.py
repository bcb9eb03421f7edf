import time

import torch
import torch.distributed as dist


class Section:
    """Time a phase and line the ranks up at its end."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.t0 = time.perf_counter()
        return self

    def __exit__(self, exc_type, exc, tb):
        if exc_type is None:
            dist.barrier()
        self.seconds = time.perf_counter() - self.t0
        return False


def make_plan(n):
    return torch.randperm(n)


def prepare(rank, world, n=1024):
    plan = torch.empty(n, dtype=torch.long)
    with Section("prepare") as section:
        table = torch.randn(n, 8)
        if rank == 0:
            plan = make_plan(n)
            if world > 1:
                dist.send(plan, dst=1)
        elif rank == 1:
            dist.recv(plan, src=0)
    return table, plan, section.seconds


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    table, plan, seconds = prepare(rank, world)
    if rank < 2:
        table = table[plan]
    print(f"rank {rank} ready in {seconds:.2f}s, first {table[0, 0]:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
