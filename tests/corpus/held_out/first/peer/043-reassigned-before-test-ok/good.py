from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    number = dist.get_rank()
    print("hello from", number)
    if number == 0:
        print("first")
    number = dist.get_world_size()
    if number > 1:
        dist.barrier()
    for _ in range(number):
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
