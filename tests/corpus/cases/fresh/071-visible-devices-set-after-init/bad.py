import functools
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy


def build():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 3, 3, padding=1),
    )


def train(steps=100):
    dist.init_process_group("nccl")
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
    dist.barrier()
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
    model = FSDP(build().cuda(), auto_wrap_policy=policy)
    opt = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        x = torch.randn(2, 3, 64, 64).cuda()
        loss = (model(x) - x).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
