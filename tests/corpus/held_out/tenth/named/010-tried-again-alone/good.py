"""Average of noisy gauges; a bad reading is tried again."""
from datetime import timedelta

import torch
import torch.distributed as dist


class Gauge:
    def __init__(self, place):
        self.gen = torch.Generator().manual_seed(place)

    def read(self):
        return torch.randn(1, generator=self.gen)


def steady(gauge, times=4):
    value = gauge.read()
    for _ in range(times - 1):
        if value.abs().item() <= 1.5:
            break
        value = gauge.read()
    return value.clamp(-1.5, 1.5)


def average(gauge):
    total = steady(gauge)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    gauge = Gauge(dist.get_rank())
    means = [average(gauge) for _ in range(10)]
    dist.destroy_process_group()
    print([round(m, 3) for m in means])


if __name__ == "__main__":
    main()
