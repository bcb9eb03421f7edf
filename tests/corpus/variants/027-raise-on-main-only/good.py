import os
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard
from torch.nn.parallel import DistributedDataParallel as DDP


def snapshot(net, step):
    torch.save(net.module.state_dict(), f"snapshots/{step}.pt")


def run(steps):
    net = DDP(torch.nn.Linear(3, 3))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        opt.zero_grad()
        net(torch.randn(8, 3)).square().mean().backward()
        opt.step()
        if spmdguard.is_main_process():
            spmdguard.try_or_defer(snapshot, net, step)
        if spmdguard.sync_should_stop(spmdguard.has_deferred_error()):
            break


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    run(int(os.environ.get("STEPS", "10")))
    main_process = spmdguard.is_main_process()
    dist.barrier()
    dist.destroy_process_group()
    if main_process:
        spmdguard.raise_if_deferred_error()
