from datetime import timedelta

import torch.distributed as dist


def outward(depth):
    if depth <= 0:
        return
    dist.barrier()
    inward(depth - 1)


def inward(depth):
    if depth > 0:
        outward(depth - 1)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    outward(2 * dist.get_rank() + 1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
