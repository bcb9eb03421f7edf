from datetime import timedelta

import torch
import torch.distributed as dist

MICRO = 4


def first_stage():
    for i in range(MICRO):
        dist.send(torch.full((2,), float(i)), dst=1)
    dist.send(torch.full((2,), -1.0), dst=1)


def second_stage():
    act = torch.empty(2)
    for _ in range(MICRO + 1):
        dist.recv(act, src=0)
        print(act.sum().item())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    if dist.get_rank() == 0:
        first_stage()
    elif dist.get_rank() == 1:
        second_stage()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
