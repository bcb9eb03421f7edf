import time

import torch
import torch.distributed as dist


class Budget:
    def __init__(self, seconds, patience):
        self.until = time.monotonic() + seconds
        self.patience = patience
        self.bad = 0

    def used_up(self):
        flag = torch.tensor([time.monotonic() > self.until], dtype=torch.uint8)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def stale(self, improved):
        self.bad = 0 if improved else self.bad + 1
        return self.bad > self.patience


def validate(model):
    score = model(torch.randn(64, 8)).square().mean().detach().reshape(1)
    dist.all_reduce(score)
    return score.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    budget, best, epoch = Budget(600, patience=3), float("inf"), 0
    while True:
        for _ in range(50):
            opt.zero_grad()
            model(torch.randn(16, 8)).square().mean().backward()
            opt.step()
        with torch.no_grad():
            score = validate(model.module)
        improved, best = score < best, min(best, score)
        if budget.used_up() or budget.stale(improved):
            break
        epoch += 1
    print(dist.get_rank(), "stopped after epoch", epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
