from datetime import timedelta

import torch.distributed as dist


def fence():
    dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    nxt = rank + 1
    if rank % 2:
        if nxt % 2:
            fence()
        else:
            dist.barrier()
    else:
        if nxt % 2:
            fence()
    print("bye", rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
