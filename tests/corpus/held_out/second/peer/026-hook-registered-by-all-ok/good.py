from datetime import timedelta

import torch
import torch.distributed as dist


class Loop:
    def __init__(self):
        self.hooks = []

    def run(self, steps):
        rate = torch.zeros(1)
        for step in range(steps):
            rate.fill_(step)
            for hook in self.hooks:
                hook(rate)


def total(rate):
    dist.all_reduce(rate)


def show(rate):
    print("rate", rate.item())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    loop = Loop()
    loop.hooks.append(total)
    if dist.get_rank() == 0:
        loop.hooks.append(show)
    loop.run(3)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
