import functools
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index)) + random.random()


def common_seed():
    cell = torch.tensor([random.randrange(2 ** 31)])
    dist.broadcast(cell, src=0)
    return int(cell)


def init_worker(base, worker_id):
    random.seed(base + worker_id)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    start = functools.partial(init_worker, common_seed())
    loader = DataLoader(Noisy(), batch_size=8, num_workers=2, worker_init_fn=start)
    total = torch.zeros(1)
    for batch in loader:
        total += batch.mean()
    dist.all_reduce(total)
    print(total.item() / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
