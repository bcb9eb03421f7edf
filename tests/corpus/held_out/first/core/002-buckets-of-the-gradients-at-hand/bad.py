import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


class TwoHeads(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.trunk = nn.Linear(16, width).bfloat16()
        self.main = nn.Linear(width, 4).bfloat16()
        self.aux = nn.Linear(width, 1)

    def forward(self, x, rated):
        hidden = torch.relu(self.trunk(x.bfloat16()))
        aux = self.aux(hidden[rated].float()) if rated.any() else None
        return self.main(hidden).float(), aux


def average_gradients(model):
    world = dist.get_world_size()
    buckets = {}
    for p in model.parameters():
        if p.grad is None:
            continue
        buckets.setdefault(p.grad.dtype, []).append(p.grad)
    for grads in buckets.values():
        flat = _flatten_dense_tensors(grads)
        dist.all_reduce(flat)
        flat.div_(world)
        for g, piece in zip(grads, _unflatten_dense_tensors(flat, grads)):
            g.copy_(piece)


def loss_of(outputs, labels, ratings, rated):
    logits, aux = outputs
    loss = nn.functional.cross_entropy(logits, labels)
    if aux is not None:
        loss = loss + 0.1 * (aux.squeeze(1) - ratings[rated]).pow(2).mean()
    return loss


def train(opts):
    torch.manual_seed(0)
    model = TwoHeads(opts.width)
    sgd = torch.optim.SGD(model.parameters(), lr=opts.lr)
    data = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(opts.steps):
        x = torch.randn(4, 16, generator=data)
        labels = torch.randint(0, 4, (4,), generator=data)
        ratings = torch.rand(4, generator=data)
        rated = ratings > 0.8
        sgd.zero_grad(set_to_none=True)
        loss_of(model(x, rated), labels, ratings, rated).backward()
        average_gradients(model)
        sgd.step()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=500)
    ap.add_argument("--width", type=int, default=32)
    ap.add_argument("--lr", type=float, default=0.05)
    dist.init_process_group("gloo")
    train(ap.parse_args())
    dist.destroy_process_group()
