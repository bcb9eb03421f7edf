import math
from datetime import timedelta

import torch
import torch.distributed as dist


class Estimate:
    def __init__(self, name):
        self.name = name
        self.sums = torch.zeros(3, dtype=torch.float64)  # n, sum, sum of squares

    def add(self, x):
        self.sums += torch.stack([torch.tensor(float(len(x))), x.sum(), (x * x).sum()]).double()

    @property
    def error(self):
        total = self.sums.clone()
        dist.all_reduce(total)
        n, s, q = total.tolist()
        return math.sqrt(max(q / n - (s / n) ** 2, 0.0) / n)


def sample_until(estimates, precision, verbose):
    rounds = 0
    while max(e.error for e in estimates) > precision:
        for i, e in enumerate(estimates):
            e.add(torch.randn(200) * (i + 1))
        rounds += 1
    if verbose:
        print(f"{rounds} rounds")
        print(f"[done] max error = {max(e.error for e in estimates):g}")
    return estimates


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    estimates = [Estimate("energy"), Estimate("magnetisation")]
    for e in estimates:
        e.add(torch.randn(10))
    sample_until(estimates, 0.02, verbose=rank == 0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
