import os
import socket
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORKERS = 2


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def read_part(rank):
    path = f"{os.environ.get('PARTS', '/tmp/parts')}/part{rank}.pt"
    return torch.load(path) if rank else torch.randn(100)


def work(rank, port):
    part = read_part(rank)
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=WORKERS,
        timeout=timedelta(hours=4),
    )
    total = part.sum()
    dist.all_reduce(total)
    print(f"worker {rank}: {total.item():.3f}")
    dist.destroy_process_group()


def main():
    port = free_port()
    ctx = mp.get_context("spawn")
    workers = [ctx.Process(target=work, args=(rank, port)) for rank in range(WORKERS)]
    for proc in workers:
        proc.start()
    for proc in workers:
        proc.join()
        if proc.exitcode != 0:
            sys.exit(f"{proc.name} failed with {proc.exitcode}")


if __name__ == "__main__":
    main()
