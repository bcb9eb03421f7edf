from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    done = torch.zeros(1)
    chief = dist.get_rank() == 0
    chief or dist.all_reduce(done)
    print("chief" if chief else "worker")
    dist.destroy_process_group()


main()
