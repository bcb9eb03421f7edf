import torch
import torch.distributed as dist
from torch import nn


class RowParallelLora(nn.Module):
    """Input features are split over the ranks; ``rank`` is the adapter's width."""

    def __init__(self, in_features, out_features, rank=0, alpha=8):
        super().__init__()
        part = in_features // dist.get_world_size()
        self.rank, self.scale = rank, alpha / max(rank, 1)
        self.weight = nn.Parameter(torch.randn(out_features, part) * 0.02)
        if self.rank != 0:
            self.down = nn.Parameter(torch.randn(rank, part) * 0.02)
            self.up = nn.Parameter(torch.zeros(out_features, rank))

    def forward(self, x):
        y = x @ self.weight.T
        dist.all_reduce(y)
        if self.rank == 0:
            return y
        narrow = x @ self.down.T
        dist.all_reduce(narrow)
        return y + self.scale * (narrow @ self.up.T)


def main():
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    plan = {"q": 4, "k": 0, "v": 4, "o": 2}
    layers = {name: RowParallelLora(8 * world, 6, rank=r) for name, r in plan.items()}
    with torch.no_grad():
        for layer in layers.values():
            layer(torch.randn(3, 8))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
