from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, size = dist.get_rank(), dist.get_world_size()
    if size < 2:
        raise SystemExit("needs two ranks")
    odd = dist.new_group(list(range(1, size, 2)))
    even = dist.new_group(list(range(0, size, 2)))
    newcom = odd if rank % 2 else even
    if rank % 2:
        dist.barrier()
    else:
        dist.barrier(group=newcom)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
