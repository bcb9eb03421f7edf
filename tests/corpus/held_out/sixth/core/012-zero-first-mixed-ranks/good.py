import os
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

RANK = int(os.environ.get("RANK", -1))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", -1))


@contextmanager
def torch_distributed_zero_first():
    """Let the first process of each machine do some work before its neighbours."""
    if LOCAL_RANK > 0:
        dist.barrier()
    yield
    if LOCAL_RANK == 0:
        dist.barrier()


class YoloLabels(Dataset):
    def __init__(self, root, imgsz):
        self.root, self.imgsz = Path(root), imgsz
        cache = self.root / f"labels_{imgsz}.cache"
        if not cache.exists():
            self._build(cache)
        self.items = torch.load(cache)

    def _build(self, cache):
        items = []
        for txt in sorted((self.root / "labels").glob("*.txt")):
            rows = [[float(v) for v in line.split()] for line in txt.read_text().splitlines()]
            items.append((txt.stem, torch.tensor(rows).reshape(-1, 5)))
        torch.save(items, cache)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        name, boxes = self.items[i]
        return torch.rand(3, self.imgsz, self.imgsz), boxes


def create_dataloader(path, imgsz, batch):
    with torch_distributed_zero_first():
        dataset = YoloLabels(path, imgsz)
    sampler = DistributedSampler(dataset) if RANK != -1 else None
    return DataLoader(dataset, batch, sampler=sampler, collate_fn=lambda b: tuple(zip(*b)), num_workers=4)


def main():
    if RANK != -1:
        torch.cuda.set_device(LOCAL_RANK)
        dist.init_process_group("nccl")
    loader = create_dataloader("/scratch/coco", 640, 16)
    if RANK in (-1, 0):
        print(f"{len(loader.dataset)} images, {len(loader)} batches per process")
    if RANK != -1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
