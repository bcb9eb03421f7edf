"""Report a windowed loss about once a second."""
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Window:
    def __init__(self, seconds: float):
        self.seconds = seconds
        self.since = time.monotonic()
        self.sums = torch.zeros(2)

    def add(self, loss: torch.Tensor) -> None:
        self.sums += torch.tensor([loss.item(), 1.0])

    def due(self) -> bool:
        return time.monotonic() - self.since >= self.seconds

    def flush(self) -> float:
        dist.all_reduce(self.sums)
        mean = (self.sums[0] / self.sums[1]).item()
        self.sums.zero_()
        self.since = time.monotonic()
        return mean


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    net = DistributedDataParallel(torch.nn.Linear(32, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    window = Window(seconds=1.0)
    for step in range(4000):
        opt.zero_grad()
        loss = net(torch.randn(64, 32)).pow(2).mean()
        loss.backward()
        opt.step()
        window.add(loss.detach())
        if window.due():
            mean = window.flush()
            if rank == 0:
                print(f"step {step}: {mean:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
