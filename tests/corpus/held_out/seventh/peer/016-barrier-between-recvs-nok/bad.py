from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    head, body = torch.zeros(1000), torch.zeros(1000)
    if rank == 0:
        dist.recv(head, src=1)
        dist.barrier()
        dist.recv(body, src=1)
    elif rank == 1:
        dist.send(head + 1, dst=0)
        dist.send(body + 2, dst=0)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
