from functools import lru_cache

import torch
import torch.distributed as dist

COLUMNS = {"age": 3.0, "height": 7.0}


@lru_cache(maxsize=None)
def world_mean(column):
    rank = dist.get_rank()
    t = torch.tensor([COLUMNS[column] + rank])
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def normalise(rows, column):
    return [r - world_mean(column) for r in rows]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for column in ("age", "height", "age"):
        rows = normalise([1.0, 2.0, 3.0], column)
        if rank == 0:
            print(column, rows)
    assert world_mean.cache_info().misses == 2
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
