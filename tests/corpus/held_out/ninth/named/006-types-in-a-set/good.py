"""Gradients flattened by type before the reduction."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def grads_of(modules):
    return [p.grad for m in modules for p in m.parameters() if p.requires_grad]


def average(grads):
    size = dist.get_world_size()
    for kind in sorted({str(grad.dtype) for grad in grads}):
        same = [grad for grad in grads if str(grad.dtype) == kind]
        flat = _flatten_dense_tensors(same)
        dist.all_reduce(flat)
        for grad, part in zip(same, _unflatten_dense_tensors(flat / size, same)):
            grad.copy_(part)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    torch.manual_seed(0)
    low, high = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1).double()
    rows = torch.randn(10, 4) + dist.get_rank()
    opt = torch.optim.SGD([*low.parameters(), *high.parameters()], lr=0.01)
    for _ in range(3):
        opt.zero_grad()
        high(low(rows).double()).mean().backward()
        average(grads_of([low, high]))
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
