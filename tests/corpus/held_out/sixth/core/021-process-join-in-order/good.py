import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


class DeblurNet(torch.nn.Module):
    def __init__(self, width=32, blocks=6):
        super().__init__()
        self.head = torch.nn.Conv2d(3, width, 3, padding=1)
        self.body = torch.nn.ModuleList([torch.nn.Conv2d(width, width, 3, padding=1) for _ in range(blocks)])
        self.tail = torch.nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        h = self.head(x)
        for conv in self.body:
            h = h + conv(h.relu())
        return x + self.tail(h)


def main_worker(rank, world_size, args):
    setup(rank, world_size, args.port)
    model = DDP(DeblurNet().cuda(rank), device_ids=[rank])
    optim = torch.optim.Adam(model.parameters(), lr=args.lr)
    pairs = torch.load(args.data, mmap=True)
    blurred, sharp = pairs["blur"], pairs["sharp"]
    per_rank = len(blurred) // world_size
    for epoch in range(args.epochs):
        order = torch.randperm(len(blurred), generator=torch.Generator().manual_seed(epoch))
        mine = order[rank * per_rank : (rank + 1) * per_rank]
        for idx in mine.split(args.batch):
            out = model(blurred[idx].cuda(rank).float() / 255)
            loss = (out - sharp[idx].cuda(rank).float() / 255).abs().mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
        if rank == 0:
            torch.save(model.module.state_dict(), f"{args.save}/epoch{epoch}.pt")
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="gopro.pt")
    p.add_argument("--save", default="experiment")
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--port", type=int, default=23456)
    args = p.parse_args()
    world_size = torch.cuda.device_count()
    os.makedirs(args.save, exist_ok=True)
    mp.spawn(main_worker, args=(world_size, args), nprocs=world_size, join=True)
    print("training finished, weights in", args.save)


if __name__ == "__main__":
    main()
