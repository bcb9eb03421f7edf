import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def init_distributed():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    world_size = int(os.environ["WORLD_SIZE"])  # what the launcher started
    dist.init_process_group(
        "nccl",
        rank=int(os.environ["RANK"]),
        world_size=world_size,
    )
    return local_rank


def main():
    local_rank = init_distributed()
    net = DDP(torch.nn.Linear(128, 128).cuda(), device_ids=[local_rank])
    opt = torch.optim.AdamW(net.parameters())
    for step in range(50):
        loss = net(torch.randn(32, 128, device="cuda")).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if dist.get_rank() == 0 and step % 10 == 0:
            print(step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
