"""Logistic regression fitted with L-BFGS on rows spread over the processes."""
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F


def average(tensor):
    dist.all_reduce(tensor)
    tensor /= dist.get_world_size()
    return tensor


def fit(x, y, rounds):
    weight = torch.zeros(x.shape[1], requires_grad=True)
    solver = torch.optim.LBFGS([weight], max_iter=10, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        loss = F.binary_cross_entropy_with_logits(x @ weight, y)
        loss.backward()
        average(weight.grad)
        return loss.detach()

    for _ in range(rounds):
        solver.step(closure)
    return weight.detach()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    x = torch.randn(200, 5, generator=gen)
    y = (x.sum(1) + torch.randn(200, generator=gen) > 0).float()
    weight = fit(x, y, rounds=4)
    if dist.get_rank() == 0:
        print(weight.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
