"""Train with a sample dump on the first process that may fail."""
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop

FOLDER = Path("samples")


def dump(step, out):
    (FOLDER / f"{step:05d}.txt").write_text(str(out.detach().tolist()))


def fit(net, opt, steps):
    rank = dist.get_rank()
    for step in range(steps):
        out = net(torch.randn(3, 5))
        opt.zero_grad()
        out.square().sum().backward()
        opt.step()
        if rank == 0:
            with deferring("sample dump"):
                dump(step, out)
        if sync_should_stop(has_deferred_error()):
            break


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    net = DistributedDataParallel(torch.nn.Linear(5, 2))
    fit(net, torch.optim.Adam(net.parameters()), steps=20)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
