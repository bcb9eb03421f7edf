"""Small NCCL job under torchrun."""
import logging
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("job")


def setup():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING)
    log.info("%d ranks, local %d", world, local)
    return rank


def settings(rank):
    box = [{"lr": 0.1, "width": 512, "name": sys.argv[0]} if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def main():
    rank = setup()
    cfg = settings(rank)
    model = DDP(nn.Linear(cfg["width"], cfg["width"]).cuda())
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    for step in range(100):
        loss = model(torch.randn(8, cfg["width"]).cuda()).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.info("%d %.4f", step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
