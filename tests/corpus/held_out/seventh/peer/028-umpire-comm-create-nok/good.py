from datetime import timedelta

import torch
import torch.distributed as dist

LIMIT = timedelta(seconds=5)


def main():
    dist.init_process_group("gloo", timeout=LIMIT)
    n = dist.get_world_size()
    front = list(range(max(1, n // 2)))
    x = torch.ones(3)
    sub = dist.new_group(front, timeout=LIMIT)
    if dist.get_rank() in front:
        dist.all_reduce(x, group=sub)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
