from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    key = dist.get_rank()
    if key > 0:
        print("worker", key)
    key = dist.get_world_size()
    if key > 1:
        dist.barrier()
    dist.destroy_process_group()


main()
