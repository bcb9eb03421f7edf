from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    box = torch.zeros(4)
    if rank == 0:
        total = torch.zeros(4)
        dist.recv(box, src=2)
        total += box
        dist.recv(box, src=1)
        total += box
        print(total)
    elif rank in (1, 2):
        dist.send(torch.full((4,), float(rank)), dst=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
