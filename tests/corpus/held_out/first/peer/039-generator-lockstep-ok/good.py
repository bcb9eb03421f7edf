from datetime import timedelta

import torch
import torch.distributed as dist


def one_hot_rows(rank, world):
    for column in range(world):
        if column == rank:
            yield torch.ones(2)
        else:
            yield torch.zeros(2)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = one_hot_rows(rank, world)
    while (row := next(rows, None)) is not None:
        dist.all_reduce(row)
        assert row[0].item() == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
