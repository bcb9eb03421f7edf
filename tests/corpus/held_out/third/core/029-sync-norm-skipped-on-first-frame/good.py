import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class DepthStream(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU())
        self.refine = nn.Sequential(nn.Conv2d(channels * 2, channels, 3, padding=1), nn.BatchNorm2d(channels))
        self.memory = None

    def forward(self, frame, first):
        feats = self.encode(frame)
        past = torch.zeros_like(feats) if first else self.memory
        feats = self.refine(torch.cat([feats, past], 1))
        self.memory = feats.detach()
        return feats.mean(1)


def clips(rank, count):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(count):
        length = int(torch.randint(2, 6, (1,), generator=gen))
        for index in range(length):
            yield torch.rand(2, 3, 16, 16, generator=gen), index == 0


def frames(rank, total):
    stream = clips(rank, total)
    return [next(stream) for _ in range(total)]


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", timeout=timedelta(minutes=5))
    net = nn.SyncBatchNorm.convert_sync_batchnorm(DepthStream().cuda())
    net = DDP(net, device_ids=[local], find_unused_parameters=True)
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    for frame, first in frames(dist.get_rank(), 40):
        loss = net(frame.cuda(), first).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
