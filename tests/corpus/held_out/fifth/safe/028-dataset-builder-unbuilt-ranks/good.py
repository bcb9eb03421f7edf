import os
from enum import Enum
from typing import List, Optional

import numpy as np
import torch
import torch.distributed as dist


class Split(Enum):
    train = 0
    valid = 1
    test = 2


class TokenDataset:
    """Sample index cached on the shared file system."""

    def __init__(self, prefix: str, n: int, split: Split, cache: str):
        path = os.path.join(cache, f"{os.path.basename(prefix)}-{split.name}-{n}.npy")
        if not os.path.exists(path):
            os.makedirs(cache, exist_ok=True)
            order = np.random.RandomState(1234 + split.value).permutation(n)
            with open(path + ".tmp", "wb") as f:
                np.save(f, order)
            os.replace(path + ".tmp", path)
        self.order = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.order)


class Builder:
    def __init__(self, sizes: List[Optional[int]], is_built_on_rank, cache: str):
        self.sizes, self.is_built_on_rank, self.cache = sizes, is_built_on_rank, cache

    def build(self, prefix: str) -> List[Optional[TokenDataset]]:
        if not self.is_built_on_rank():
            for size in self.sizes:
                if size is not None:
                    dist.barrier()
            return [None] * len(Split)
        return [self._generic(prefix, size, split) for split, size in zip(Split, self.sizes)]

    def _generic(self, prefix, size, split):
        if size is None:
            return None
        rank = dist.get_rank()
        dataset = None
        if rank == 0:
            dataset = TokenDataset(prefix, size, split, self.cache)
        dist.barrier()
        if rank != 0:
            dataset = TokenDataset(prefix, size, split, self.cache)
        return dataset


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    pp = 4 if world % 4 == 0 else 1
    stage = rank // (world // pp)
    builder = Builder([100_000, None, 1_000], lambda: stage in (0, pp - 1), "/shared/cache")
    train, _, test = builder.build("/shared/corpus/wiki")
    total = torch.tensor([0 if train is None else len(train)])
    dist.all_reduce(total, op=dist.ReduceOp.MAX)
    print(f"rank {rank} stage {stage}: {total.item()} samples, test {None if test is None else len(test)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
