"""Train a small net and write one line a step."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import raise_if_deferred_error, rank_local
from torch.nn.parallel import DistributedDataParallel


@rank_local(only="main")
def write_line(path, step, loss):
    with open(path, "a") as log:
        log.write(f"{step},{loss:.5f}\n")


def train(steps):
    net = DistributedDataParallel(torch.nn.Linear(12, 1))
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(steps):
        batch = torch.randn(32, 12)
        loss = (net(batch).squeeze(1) - batch.sum(dim=1)).square().mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        write_line("losses.csv", step, loss.item())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    train(200)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
