"""Contrastive pretraining with an experiment tracker on main."""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
import wandb
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard


@contextlib.contextmanager
def tracker(name, enabled):
    if not enabled:
        yield None
        return
    run = wandb.init(project="contrastive", name=name)
    try:
        yield run
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.summary["status"] = "success"
    run.finish(exit_code=0)


@spmdguard.rank_local
def note(run, values, step):
    if run is not None:
        run.log(values, step=step)


@spmdguard.rank_local(default=None)
def load_pair(index):
    pair = torch.load(f"pairs/{index:08d}.pt")
    return pair["left"].cuda(), pair["right"].cuda()


def dummy():
    return torch.zeros(2, 64, device="cuda"), torch.zeros(2, 64, device="cuda")


def loop(model, opt, run, rank, world, steps):
    for step in range(steps):
        left, right = load_pair(step * world + rank) or dummy()
        a, b = F.normalize(model(torch.cat([left, right])), dim=1).chunk(2)
        loss = F.cross_entropy(a @ b.T / 0.1, torch.arange(len(a), device=a.device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        note(run, {"loss": loss.item()}, step)
        if spmdguard.sync_should_stop():
            break


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    with tracker("base", enabled=rank == 0) as run:
        model = DDP(nn.Linear(64, 32).cuda())
        opt = torch.optim.Adam(model.parameters())
        loop(model, opt, run, rank, world, 10_000)
        dist.destroy_process_group()
        spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
