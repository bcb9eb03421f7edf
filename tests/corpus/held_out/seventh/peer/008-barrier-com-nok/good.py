from datetime import timedelta

import torch.distributed as dist

LIMIT = timedelta(seconds=5)


def main():
    dist.init_process_group("gloo", timeout=LIMIT)
    rank, n = dist.get_rank(), dist.get_world_size()
    halves = [dist.new_group(list(range(k, n, 2)), timeout=LIMIT) for k in (0, 1)]
    if rank % 2:
        dist.barrier(group=halves[1])
    else:
        dist.barrier(group=halves[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
