from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    lead = dist.get_rank() == 0
    length = 10 if lead else 12
    part = torch.ones(length)
    dist.reduce(part, dst=0)
    if lead:
        print(part)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
