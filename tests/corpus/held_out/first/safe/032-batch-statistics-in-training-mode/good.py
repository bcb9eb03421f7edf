import torch
import torch.distributed as dist
from torch import nn


class SyncNorm(nn.Module):
    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("var", torch.ones(width))

    def batch_stats(self, x):
        n = torch.tensor([float(x.shape[0])])
        packed = torch.cat([x.sum(0), (x * x).sum(0), n])
        if dist.is_initialized() and dist.get_world_size() > 1:
            dist.all_reduce(packed)
        total, square, n = packed.split([x.shape[1], x.shape[1], 1])
        mean = total / n
        return mean, square / n - mean**2

    @torch.no_grad()
    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + 1e-5).sqrt()
        mean, var = self.batch_stats(x)
        self.mean.lerp_(mean, self.momentum)
        self.var.lerp_(var, self.momentum)
        return (x - mean) / (var + 1e-5).sqrt()


def main():
    dist.init_process_group("gloo")
    layer = SyncNorm(4)
    for _ in range(3):
        layer(torch.randn(5 + dist.get_rank(), 4))
    layer.eval()
    if dist.get_rank() == 0:
        print(layer(torch.zeros(1, 4)).shape)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
