import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def setup():
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    free, total = torch.cuda.mem_get_info()
    print(f"rank {dist.get_rank()}: {free / 2**30:.1f} of {total / 2**30:.1f} GiB free")
    local = int(os.environ["LOCAL_RANK"])
    os.environ["CUDA_VISIBLE_DEVICES"] = str(local)
    torch.cuda.empty_cache()
    return torch.device("cuda")


def make_net(device):
    blocks = [torch.nn.Sequential(torch.nn.Conv2d(10, 10, 3, padding=1), torch.nn.ReLU()) for _ in range(4)]
    return FSDP(torch.nn.Sequential(*blocks).to(device))


def step(net, opt, device):
    image = torch.randn(4, 10, 32, 32, device=device)
    loss = net(image).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    device = setup()
    dist.barrier()
    net = make_net(device)
    opt = torch.optim.SGD(net.parameters(), lr=1e-2)
    for it in range(50):
        loss = step(net, opt, device)
        if it % 10 == 0:
            dist.all_reduce(loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
