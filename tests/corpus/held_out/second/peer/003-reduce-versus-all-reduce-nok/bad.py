from datetime import timedelta

import torch
import torch.distributed as dist


class Counter:
    def __init__(self, rank):
        self.rank = rank
        self.seen = torch.zeros(1)

    def add(self, n):
        self.seen += n

    def total(self):
        if self.rank == 0:
            dist.reduce(self.seen, dst=0)
        else:
            dist.all_reduce(self.seen)
        return self.seen.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    counter = Counter(dist.get_rank())
    counter.add(4)
    print(counter.total())
    dist.destroy_process_group()


main()
