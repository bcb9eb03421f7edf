import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ClipNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.fuse = nn.Sequential(nn.Conv2d(16, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.memory = None

    def forward(self, frame, first):
        seen = self.look(frame)
        memory = torch.zeros_like(seen) if first else self.memory
        out = self.fuse(torch.cat([seen, memory], dim=1))
        self.memory = out.detach()
        return out.mean()


def frames(length, total):
    for i in range(total):
        yield torch.rand(2, 3, 32, 32, device="cuda"), i % length == 0


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    net = nn.SyncBatchNorm.convert_sync_batchnorm(ClipNet()).cuda()
    net = DDP(net, device_ids=[local], find_unused_parameters=True)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for frame, first in frames(length=4 + dist.get_rank(), total=24):
        opt.zero_grad()
        net(frame, first).backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
