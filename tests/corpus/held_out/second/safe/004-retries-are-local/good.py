import random
from datetime import timedelta

import torch
import torch.distributed as dist


class Flaky:
    """A source that fails now and then."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def read(self, index):
        if self.random.random() < 0.3:
            raise ConnectionError(f"row {index}")
        return torch.full((4,), float(index))


def patient_read(source, index, attempts=50):
    for _ in range(attempts):
        try:
            return source.read(index)
        except ConnectionError:
            continue
    return None


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    source = Flaky(dist.get_rank())
    total = torch.zeros(4)
    for index in range(10):
        row = patient_read(source, index)
        lost = torch.tensor([int(row is None)])
        dist.all_reduce(lost)
        if lost.item():
            raise RuntimeError(f"row {index} lost by {lost.item()} processes")
        dist.all_reduce(row)
        total += row
    print(total.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
