from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Stopper:
    def __init__(self, patience):
        self.best, self.when, self.patience = 0.0, 0, patience

    def __call__(self, epoch, fitness):
        if fitness > self.best:
            self.best, self.when = fitness, epoch
        return epoch - self.when >= self.patience


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    model = DDP(torch.nn.Linear(5, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    stopper = Stopper(patience=3)
    stop = False
    for epoch in range(20):
        loss = model(torch.randn(8, 5)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            stop = stopper(epoch, fitness=1.0 / (1 + abs(epoch - 4)))
        verdict = [stop if rank == 0 else None]
        dist.broadcast_object_list(verdict, 0)
        if rank != 0:
            stop = verdict[0]
        if stop:
            break
    assert epoch == 7
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
