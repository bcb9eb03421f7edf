from datetime import timedelta

import torch.distributed as dist


def rounds(n):
    for i in range(n):
        yield i
        dist.barrier()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    for i in rounds(5):
        print(rank, i)
        if i > 2:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
