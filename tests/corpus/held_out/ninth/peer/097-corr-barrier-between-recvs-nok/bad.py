from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    a, b = torch.zeros(1000), torch.zeros(1000)
    if dist.get_rank() == 0:
        dist.recv(a, src=1)
        dist.barrier()
        dist.recv(b, src=1)
    elif dist.get_rank() == 1:
        dist.send(a, dst=0)
        dist.send(b, dst=0)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
