import torch
import torch.distributed as dist
from torch import nn


def any_rank(flag):
    t = torch.tensor([1.0 if flag else 0.0])
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item() > 0


def step(model, opt, x, y):
    loss = nn.functional.mse_loss(model(x), y)
    bad = not torch.isfinite(loss).item()
    if any_rank(bad):
        opt.zero_grad(set_to_none=True)
        return None
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    opt.step()
    opt.zero_grad(set_to_none=True)
    return loss.item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    skipped = 0
    for i in range(4):
        x, y = torch.randn(2, 4), torch.randn(2, 1)
        if i == 1 and dist.get_rank() == 0:
            x[0, 0] = float("nan")
        skipped += step(model, opt, x, y) is None
    assert skipped == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
