from datetime import timedelta

import torch
import torch.distributed as dist


def sums(values):
    for v in values:
        t = torch.tensor([v])
        dist.all_reduce(t)
        yield t.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    stream = list(sums([1.0, 2.0, 3.0]))
    if dist.get_rank() == 0:
        print(stream)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
