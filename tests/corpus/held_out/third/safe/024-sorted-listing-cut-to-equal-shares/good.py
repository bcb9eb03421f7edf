import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist


def rank_files(folder):
    rank, world = dist.get_rank(), dist.get_world_size()
    names = sorted(n for n in os.listdir(folder) if n.endswith(".txt"))
    usable = len(names) - len(names) % world
    return names[rank:usable:world]


def fill(folder):
    for i in range(7):
        with open(os.path.join(folder, f"{i}.txt"), "w") as handle:
            handle.write(str(i))


def main():
    folder = tempfile.mkdtemp()
    fill(folder)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    total = torch.zeros(1)
    for name in rank_files(folder):
        with open(os.path.join(folder, name)) as handle:
            value = torch.tensor([float(handle.read())])
        dist.all_reduce(value)
        total += value
    assert total.item() == 15.0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
