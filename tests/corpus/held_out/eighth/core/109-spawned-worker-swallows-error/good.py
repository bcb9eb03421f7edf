import os
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rollout(rank, iteration):
    if rank == 1 and iteration == 3:
        raise ValueError("environment returned an observation of the wrong shape")
    return torch.randn(16)


def train(rank, world):
    dist.init_process_group(
        "gloo", rank=rank, world_size=world, timeout=timedelta(seconds=20)
    )
    policy = torch.zeros(16)
    for iteration in range(8):
        grad = rollout(rank, iteration)
        dist.all_reduce(grad)
        policy += 0.1 * grad / world
    if rank == 0:
        torch.save(policy, "/tmp/policy.pt")
    dist.destroy_process_group()


def worker(rank, world, reports):
    try:
        train(rank, world)
    except Exception:
        reports.put(f"worker {rank}:\n{traceback.format_exc()}")
        raise  # a non-zero exit, so that spawn() stops the siblings and raises too


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29641")
    world = 2
    reports = mp.get_context("spawn").SimpleQueue()
    try:
        mp.spawn(worker, args=(world, reports), nprocs=world)
    finally:
        while not reports.empty():
            print(reports.get())
    print("training finished")


if __name__ == "__main__":
    main()
