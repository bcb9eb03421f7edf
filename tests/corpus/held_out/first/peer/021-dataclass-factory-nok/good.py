from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist


@dataclass
class Clock:
    period: int = 1
    offset: int = field(default_factory=dist.get_world_size)
    step: int = 0

    def tick(self):
        self.step += self.period
        return self.step > self.offset


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    clock = Clock()
    value = torch.ones(1)
    for _ in range(3):
        if clock.tick():
            dist.all_reduce(value)
    print(value.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
