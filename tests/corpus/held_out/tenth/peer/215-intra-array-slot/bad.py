from datetime import timedelta

import torch
import torch.distributed as dist

ROLE = (1, 0, 1, 0, 1, 0, 1, 0)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    x = torch.zeros(2)
    active = ROLE[dist.get_rank() % len(ROLE)]
    if not active:
        print("standby")
    else:
        dist.broadcast(x, src=0)
    if ROLE[0]:
        dist.barrier()
    dist.destroy_process_group()


main()
