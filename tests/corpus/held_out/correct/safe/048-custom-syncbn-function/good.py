"""Synchronised batch norm as a custom autograd function, in a small U-shaped net."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class _SyncNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps, group):
        dims = [0, 2, 3]
        count = torch.full((1,), x.numel() / x.size(1), device=x.device, dtype=x.dtype)
        packed = torch.cat([x.sum(dims), x.pow(2).sum(dims), count])
        dist.all_reduce(packed, group=group)
        c = x.size(1)
        n = packed[-1]
        mean = packed[:c] / n
        var = (packed[c:2 * c] / n - mean.pow(2)).clamp(min=0)
        inv = (var + eps).rsqrt()
        xhat = (x - mean.view(1, -1, 1, 1)) * inv.view(1, -1, 1, 1)
        ctx.save_for_backward(xhat, weight, inv, n)
        ctx.group = group
        ctx.mark_non_differentiable(mean, var)
        return xhat * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1), mean, var

    @staticmethod
    def backward(ctx, grad, _mean, _var):
        xhat, weight, inv, n = ctx.saved_tensors
        dims = [0, 2, 3]
        grad_bias = grad.sum(dims)
        grad_weight = (grad * xhat).sum(dims)
        c = weight.numel()
        packed = torch.cat([grad_bias, grad_weight])
        dist.all_reduce(packed, group=ctx.group)
        g_mean, gx_mean = packed[:c] / n, packed[c:] / n
        inner = grad - g_mean.view(1, -1, 1, 1) - xhat * gx_mean.view(1, -1, 1, 1)
        grad_x = inner * (inv * weight).view(1, -1, 1, 1)
        # weight and bias gradients stay local: DDP averages them
        return grad_x, grad_weight, grad_bias, None, None


class SyncNorm2d(nn.Module):
    def __init__(self, channels, eps=1e-5, momentum=0.1, group=None):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.eps, self.momentum, self.group = eps, momentum, group

    def forward(self, x):
        if not self.training:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        y, mean, var = _SyncNorm.apply(x.contiguous(), self.weight, self.bias, self.eps, self.group)
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var, self.momentum)
        return y


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), SyncNorm2d(cout), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.down1, self.down2 = block(1, width), block(width, 2 * width)
        self.mid = block(2 * width, 2 * width)
        self.up = block(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.mid(self.down2(F.max_pool2d(a, 2)))
        b = F.interpolate(b, scale_factor=2)
        return self.out(self.up(torch.cat([a, b], 1)))


def discs(n, gen, size=64):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre = torch.rand(n, 2, 1, 1, generator=gen) * size
    radius = 4 + torch.rand(n, 1, 1, generator=gen) * 10
    mask = ((yy - centre[:, 0]) ** 2 + (xx - centre[:, 1]) ** 2 < radius ** 2).float().unsqueeze(1)
    return mask + 0.5 * torch.randn(mask.shape, generator=gen), mask


@torch.no_grad()
def dice(net, gen, device):
    net.eval()
    sums = torch.zeros(2, device=device)
    for _ in range(4):
        x, m = discs(16, gen)
        p = (net(x.to(device)) > 0).float()
        m = m.to(device)
        sums += torch.stack([2 * (p * m).sum(), p.sum() + m.sum()])
    net.train()
    dist.all_reduce(sums)
    return (sums[0] / sums[1].clamp(min=1)).item()


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = UNet().to(device)
    norms = dist.new_group(timeout=timedelta(minutes=10))
    for m in net.modules():
        if isinstance(m, SyncNorm2d):
            m.group = norms
    model = DDP(net, device_ids=[local], broadcast_buffers=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, 601):
        x, m = discs(8, gen)
        loss = F.binary_cross_entropy_with_logits(model(x.to(device)), m.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            score = dice(net, gen, device)
            if rank == 0:
                print(f"step {step}: loss {loss.item():.4f} dice {score:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
