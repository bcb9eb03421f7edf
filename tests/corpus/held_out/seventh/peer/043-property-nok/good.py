from datetime import timedelta

import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.pair = torch.zeros(2)

    def add(self, value):
        self.pair += torch.tensor([value, 1.0])

    @property
    def mean(self):
        both = self.pair.clone()
        dist.all_reduce(both)
        return (both[0] / both[1]).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    meter = Meter()
    meter.add(2.5)
    mean = meter.mean
    if dist.get_rank() == 0:
        print(f"mean {mean:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
