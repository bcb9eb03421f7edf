import json
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def leave():
    dist.barrier()
    dist.destroy_process_group()


def connect():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    return dist.get_rank(), dist.get_world_size()


def rows(path, rank, world):
    with open(path) as lines:
        for number, line in enumerate(lines):
            if number % world == rank:
                yield torch.tensor(json.loads(line)["values"])


def main(path):
    rank, world = connect()
    total = torch.zeros(3)
    for row in rows(path, rank, world):
        total += row
    dist.all_reduce(total)
    if rank == 0:
        print(total.tolist())
    leave()


if __name__ == "__main__":
    main(sys.argv[1])
