from datetime import timedelta

import torch.distributed as dist


class Box:
    value = 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    one, two = Box(), Box()
    one.value = dist.get_rank()
    if one.value:
        print("not the first")
    one.value = 1
    if one.value and two.value:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
