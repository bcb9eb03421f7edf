import torch
import torch.distributed as dist
from torch import nn


def trainable(model):
    return {name for name, p in model.named_parameters() if p.requires_grad}


def average_grads(model):
    params = dict(model.named_parameters())
    world = dist.get_world_size()
    for name in sorted(trainable(model)):
        p = params[name]
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad.div_(world)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 2), "c": nn.Linear(3, 1)})
    head = "b" if dist.get_rank() == 0 else "c"
    model[head](model["a"](torch.ones(2, 3))).sum().backward()
    average_grads(model)
    assert all(p.grad is not None for p in model.parameters())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
