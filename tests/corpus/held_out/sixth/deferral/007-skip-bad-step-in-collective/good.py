"""Segmentation training, long images."""
import logging
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard

logger = logging.getLogger("seg")
STEPS = 20_000


def make_net(classes):
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, classes, 1),
    )


@spmdguard.rank_local(default=None)
def fetch(step):
    side = 256 + 32 * (step % 9)
    return torch.rand(2, 3, side, side), torch.randint(12, (2, side, side))


def blank():
    return torch.zeros(1, 3, 256, 256), torch.zeros(1, 256, 256, dtype=torch.long)


@spmdguard.collective
def train_step(net, opt, image, target):
    opt.zero_grad()
    loss = F.cross_entropy(net(image), target)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    return loss.item()


def train():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    net = DDP(make_net(12).cuda(), device_ids=[local])
    opt = torch.optim.AdamW(net.parameters())
    for step in range(STEPS):
        image, target = fetch(step) or blank()
        loss = train_step(net, opt, image.cuda(), target.cuda())
        if step % 100 == 0:
            logger.info("step %d loss %.3f", step, loss)
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.run(train)
