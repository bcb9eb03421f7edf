import logging
import os
from pathlib import Path
from typing import Optional

import numpy as np
import torch
import torch.distributed as dist

log = logging.getLogger(__name__)


class ShuffledIndexLoader:
    def __init__(self, n_items: int, batch: int, work_dir: str, seed: int = 0):
        self.n, self.batch, self.seed = n_items, batch, seed
        self.work_dir = Path(work_dir)
        self.epoch: Optional[int] = None
        self._indices: Optional[np.ndarray] = None

    @property
    def index_file(self) -> Path:
        return self.work_dir / f"indices-seed{self.seed}-epoch{self.epoch}-n{self.n}.npy"

    def _build(self) -> np.ndarray:
        rng = np.random.Generator(np.random.PCG64(self.seed + self.epoch))
        order = np.arange(self.n, dtype=np.uint32)
        rng.shuffle(order)
        return order

    def reshuffle(self, epoch: int, in_memory: bool = False) -> None:
        self.epoch = epoch
        if in_memory:
            self._indices = self._build()
        else:
            self._indices = None
            if int(os.environ["LOCAL_RANK"]) == 0:
                if self.index_file.is_file():
                    log.info("using %s", self.index_file)
                else:
                    self.work_dir.mkdir(parents=True, exist_ok=True)
                    tmp = self.index_file.with_suffix(".tmp.npy")
                    np.save(tmp, self._build())
                    tmp.replace(self.index_file)
        dist.barrier()

    def __iter__(self):
        order = self._indices if self._indices is not None else np.load(self.index_file, mmap_mode="r")
        world, rank = dist.get_world_size(), dist.get_rank()
        usable = len(order) - len(order) % (world * self.batch)
        for start in range(rank * self.batch, usable, world * self.batch):
            yield torch.from_numpy(order[start:start + self.batch].astype(np.int64))


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    data = torch.arange(10_000, dtype=torch.float32).unsqueeze(1) / 1e4
    loader = ShuffledIndexLoader(len(data), 32, "/tmp/order", seed=13)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        loader.reshuffle(epoch, in_memory=epoch == 0)
        for idx in loader:
            loss = (net(data[idx]) - 2 * data[idx]).square().mean()
            loss.backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
