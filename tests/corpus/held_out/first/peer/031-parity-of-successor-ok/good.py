from datetime import timedelta

import torch.distributed as dist


def fence():
    dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    after = rank + 1
    if rank % 2:
        if after % 4:
            dist.barrier()
        else:
            fence()
    else:
        if after % 2:
            fence()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
