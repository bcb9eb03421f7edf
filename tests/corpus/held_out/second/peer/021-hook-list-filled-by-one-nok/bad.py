from datetime import timedelta

import torch
import torch.distributed as dist


class Loop:
    def __init__(self):
        self.hooks = []

    def on_step(self, fn):
        self.hooks.append(fn)
        return fn

    def run(self, steps):
        for step in range(steps):
            for hook in self.hooks:
                hook(step)


def throughput(step):
    rate = torch.tensor([float(step)])
    dist.all_reduce(rate)
    print(step, rate.item())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    loop = Loop()
    if dist.get_rank() == 0:
        loop.on_step(throughput)
    loop.run(2)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
