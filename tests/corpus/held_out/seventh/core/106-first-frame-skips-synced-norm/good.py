import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class VideoNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.coarse = nn.Conv2d(3, width, 3, padding=1)
        self.refine = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()
        )

    def forward(self, frame, previous):
        now = self.coarse(frame)
        if previous is None:
            previous = torch.zeros_like(now)  # the branch and its norm run on every frame
        return now + self.refine(torch.cat([now, previous], dim=1))


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    net = nn.SyncBatchNorm.convert_sync_batchnorm(VideoNet()).cuda()
    net = DDP(net, device_ids=[local_rank], find_unused_parameters=True)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    clip = 4 + dist.get_rank()  # frames per clip in this part of the data
    state = None
    for step in range(40):
        if step % clip == 0:
            state = None
        out = net(torch.randn(2, 3, 16, 16, device="cuda"), state)
        opt.zero_grad()
        out.pow(2).mean().backward()
        opt.step()
        state = out.detach()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
