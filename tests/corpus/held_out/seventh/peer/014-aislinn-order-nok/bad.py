from datetime import timedelta

import torch
import torch.distributed as dist


class Exchange:
    def __init__(self):
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.box = torch.zeros(3)

    def out(self):
        parts = [torch.full((3,), float(k)) for k in range(self.size)] if self.rank == 0 else None
        dist.scatter(self.box, parts, src=0)

    def back(self):
        parts = [torch.zeros(3) for _ in range(self.size)] if self.rank == 0 else None
        dist.gather(self.box, parts, dst=0)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    ex = Exchange()
    if ex.rank == 0:
        ex.out()
        ex.back()
    if ex.rank == 1:
        ex.back()
        ex.out()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
