"""Post offices that empty their queues in step."""
from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist


class Office:
    def __init__(self, place):
        self.queue = deque(range(3 + 2 * place))
        self.posted = 0

    def left(self):
        return len(self.queue)

    def post(self, width=2):
        bag = [self.queue.popleft() for _ in range(min(width, len(self.queue)))]
        self.posted += len(bag)
        return torch.tensor([float(sum(bag))])


def most(count):
    box = torch.tensor([count])
    dist.all_reduce(box, op=dist.ReduceOp.MAX)
    return int(box.item())


def run(office):
    weight = 0.0
    while (count := most(office.left())) > 0:
        bag = office.post()
        dist.all_reduce(bag)
        weight += bag.item() / count
    return weight


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    office = Office(dist.get_rank())
    weight = run(office)
    dist.barrier()
    dist.destroy_process_group()
    print(office.posted, round(weight, 3))


if __name__ == "__main__":
    main()
