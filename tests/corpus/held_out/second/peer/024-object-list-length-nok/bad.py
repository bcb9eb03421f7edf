from datetime import timedelta

import torch.distributed as dist


def settings(rank):
    if rank == 0:
        return [{"lr": 0.1}, {"momentum": 0.9}]
    return [None]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    box = settings(dist.get_rank())
    dist.broadcast_object_list(box, src=0)
    merged = {}
    for part in box:
        merged.update(part)
    print(merged)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
