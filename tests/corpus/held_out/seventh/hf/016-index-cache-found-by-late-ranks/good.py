import glob
import os
import pickle

import pyarrow.parquet as pq
import torch.distributed as dist
from torch.utils.data import IterableDataset


def row_index(root):
    cache = os.path.join(root, "row_index.pkl")
    if dist.get_rank() == 0 and not os.path.exists(cache):
        files = sorted(glob.glob(os.path.join(root, "*.parquet")))
        rows = [pq.ParquetFile(f).metadata.num_rows for f in files]
        with open(cache + ".tmp", "wb") as fh:
            pickle.dump((files, rows), fh)
        os.replace(cache + ".tmp", cache)
    dist.barrier()
    with open(cache, "rb") as fh:
        return pickle.load(fh)


class Latents(IterableDataset):
    def __init__(self, root):
        self.files, self.rows = row_index(root)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.per_rank = sum(self.rows) // self.world

    def __iter__(self):
        start, stop = self.rank * self.per_rank, (self.rank + 1) * self.per_rank
        offset = 0
        for name, n in zip(self.files, self.rows):
            low, high = max(start - offset, 0), min(stop - offset, n)
            if low < high:
                yield from pq.read_table(name).slice(low, high - low).to_pylist()
            offset += n
