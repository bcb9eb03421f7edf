import os
from typing import List

import torch
import torch.distributed as dist
import torch.nn.functional as F


def _plain(x: torch.Tensor) -> List[torch.Tensor]:
    out = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(out, x)
    return out


def gather_rows(x: torch.Tensor) -> List[torch.Tensor]:
    """All-gather tensors that may differ in their sizes but not in their number of dimensions."""
    x = x.contiguous()
    if x.ndim == 0:
        return _plain(x)
    size = torch.tensor(x.shape, device=x.device)
    sizes = [torch.zeros_like(size) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, size)
    biggest = torch.stack(sizes).max(dim=0).values
    if all(bool((s == biggest).all()) for s in sizes):
        return _plain(x)
    pad = []
    for missing in reversed((biggest - size).tolist()):
        pad += [0, missing]
    padded = F.pad(x, pad)
    out = [torch.zeros_like(padded) for _ in sizes]
    dist.all_gather(out, padded)
    return [t[tuple(slice(n) for n in s.tolist())] for t, s in zip(out, sizes)]


class RetrievalRecall:
    def __init__(self, k: int, dim: int, device):
        self.k, self.dim, self.device = k, dim, device
        self.queries, self.docs = [], []

    def update(self, queries, docs):
        self.queries.append(queries)
        self.docs.append(docs)

    def compute(self) -> float:
        empty = torch.zeros(0, self.dim, device=self.device)
        q = torch.cat(gather_rows(torch.cat(self.queries or [empty])))
        d = torch.cat(gather_rows(torch.cat(self.docs or [empty])))
        if len(q) == 0:
            return 0.0
        top = (q @ d.t()).topk(min(self.k, len(d))).indices
        return (top == torch.arange(len(q), device=q.device)[:, None]).any(1).float().mean().item()


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    rank, world = dist.get_rank(), dist.get_world_size()
    metric = RetrievalRecall(5, 48, device)
    # 37 batches are dealt out in turn, so some ranks have one less and with many ranks some have none
    for b in range(rank, 37, world):
        gen = torch.Generator(device=device).manual_seed(b)
        docs = torch.randn(16, 48, device=device, generator=gen)
        metric.update(docs + 0.2, docs)
    value = metric.compute()
    if rank == 0:
        print("recall", value)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
