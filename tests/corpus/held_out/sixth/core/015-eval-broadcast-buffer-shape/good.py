import math
import os

import torch
import torch.distributed as dist
from torch import nn

N_DENSE, N_SPARSE = 13, 26


class DLRMSmall(nn.Module):
    def __init__(self, rows=100_000, dim=32):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(N_DENSE, dim), nn.ReLU())
        self.table = nn.Embedding(rows, dim)
        self.top = nn.Sequential(nn.Linear(dim * (N_SPARSE + 1), 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, dense, sparse):
        z = torch.cat([self.bottom(dense).unsqueeze(1), self.table(sparse)], dim=1)
        return self.top(z.flatten(1)).squeeze(-1)


class CriteoEval:
    """Rank 0 owns the file; it hands every batch to all, each rank scores a slice."""

    def __init__(self, path, num_examples, batch_size, device):
        self.path, self.num_examples, self.batch_size, self.device = path, num_examples, batch_size, device
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def _read(self):
        data = torch.load(self.path, map_location="cpu")[: self.num_examples]
        yield from data.split(self.batch_size)

    def __iter__(self):
        source = self._read() if self.rank == 0 else None
        for i in range(math.ceil(self.num_examples / self.batch_size)):
            if self.rank == 0:
                packed = next(source).float().contiguous().to(self.device)
                size = torch.tensor([packed.shape[0]], device=self.device)
            else:
                size = torch.zeros(1, dtype=torch.long, device=self.device)
            dist.broadcast(size, src=0)
            if self.rank != 0:
                packed = torch.empty(int(size.item()), N_DENSE + N_SPARSE + 1, device=self.device)
            dist.broadcast(packed, src=0)
            yield packed[self.rank :: self.world]


@torch.no_grad()
def evaluate(model, batches, device):
    total = torch.zeros(2, dtype=torch.float64, device=device)
    for chunk in batches:
        dense, sparse, label = chunk[:, :N_DENSE], chunk[:, N_DENSE:-1].long() % 100_000, chunk[:, -1]
        loss = nn.functional.binary_cross_entropy_with_logits(model(dense, sparse), label, reduction="sum")
        total += torch.tensor([loss.item(), label.numel()], dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = DLRMSmall().to(device).eval()
    loss = evaluate(model, CriteoEval("day_23.pt", 89_137_319, 524_288, device), device)
    if dist.get_rank() == 0:
        print("validation/loss", loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
