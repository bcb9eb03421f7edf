from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    group = None
    if dist.get_rank() == 0:
        group = dist.new_group([0])
    if group is not None:
        dist.barrier(group=group)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
