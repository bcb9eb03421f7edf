from datetime import timedelta

import torch.distributed as dist


def descend(i):
    dist.barrier()
    if i < 3:
        descend(i + 1)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    for i in range(2):
        dist.barrier()
        descend(i)
    descend(dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
