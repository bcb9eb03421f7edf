from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    kind = {0: torch.float32, 1: torch.float64}[dist.get_rank() % 2]
    grad = torch.ones(6, dtype=kind)
    grad = grad.to(torch.float64)
    dist.all_reduce(grad)
    print(grad)
    dist.destroy_process_group()


main()
