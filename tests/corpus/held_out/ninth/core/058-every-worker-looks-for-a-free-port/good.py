import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def find_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def join(rank, world, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=30))


def worker(rank, world, port):
    join(rank, world, port)
    value = torch.tensor([rank + 1.0])
    dist.all_reduce(value)
    print(f"rank {rank}: {value.item()}")
    dist.destroy_process_group()


def launch(world):
    mp.spawn(worker, args=(world, find_free_port()), nprocs=world)


if __name__ == "__main__":
    launch(world=4)
