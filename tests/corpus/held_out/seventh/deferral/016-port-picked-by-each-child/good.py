"""Spawn a few processes and let them vote."""
import os
import socket
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def vote(place: int, size: int, port: int, question: str) -> None:
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=place, world_size=size, timeout=timedelta(seconds=30))
    ballot = torch.tensor([(len(question) + place) % 2])
    dist.all_reduce(ballot)
    dist.destroy_process_group()
    if place == 0:
        print(question, "yes" if 2 * ballot.item() > size else "no")


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    mp.spawn(vote, args=(size, free_port(), "shall we stop?"), nprocs=size, join=True)


if __name__ == "__main__":
    main()
