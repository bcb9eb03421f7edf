from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    cell = torch.zeros(1, dtype=torch.int64)
    mirror = torch.empty_like(cell)
    total = torch.ones(4)
    cell.fill_(dist.get_rank())
    mirror.copy_(cell)
    if mirror.item() > 0:
        dist.all_reduce(total)
    print(total.sum().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
