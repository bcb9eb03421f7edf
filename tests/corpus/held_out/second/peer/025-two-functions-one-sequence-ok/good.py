from datetime import timedelta

import torch
import torch.distributed as dist


def give(cell):
    cell.fill_(7.0)
    dist.broadcast(cell, src=0)
    dist.barrier()


def take(cell):
    dist.broadcast(cell, src=0)
    cell.mul_(2)
    dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    cell = torch.zeros(1)
    role = give if dist.get_rank() == 0 else take
    role(cell)
    print(cell.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
