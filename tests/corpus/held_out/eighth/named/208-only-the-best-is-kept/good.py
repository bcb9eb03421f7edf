"""Keep a checkpoint whenever the score gets better."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from spmdguard import raise_if_deferred_error, rank_local, save_checkpoint, sync_should_stop


@rank_local(only="main")
def write(path, net):
    torch.save(net.module.state_dict(), path / "net.pt")


@torch.no_grad()
def score(net, rows):
    value = -net.module(rows).square().mean().reshape(1)
    dist.all_reduce(value)
    return value.item()


def fit(net, epochs):
    rank = dist.get_rank()
    gen = torch.Generator().manual_seed(31 * rank)
    held_out = torch.randn(20, 7, generator=gen)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    best = float("-inf")
    for epoch in range(epochs):
        for _ in range(5):
            opt.zero_grad()
            net(torch.randn(8, 7, generator=gen)).square().mean().backward()
            opt.step()
        now = score(net, held_out)
        if now > best:
            best = now
            save_checkpoint("best", step=epoch, save_state=lambda path: write(path, net), keep_last=1)
        if sync_should_stop():
            break


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    fit(DistributedDataParallel(torch.nn.Linear(7, 3)), epochs=6)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
