import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def init_distributed():
    rank = int(os.environ.get("RANK", "0"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("nccl", rank=rank, world_size=world, timeout=timedelta(minutes=10))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    warm = torch.ones(1, device=device)
    if world > 1:
        dist.all_reduce(warm)
    return device, rank, world


class Tagger(torch.nn.Module):
    def __init__(self, vocab=500, tags=9):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, 48)
        self.rnn = torch.nn.GRU(48, 48, batch_first=True)
        self.tags = torch.nn.Linear(48, tags)

    def forward(self, ids):
        return self.tags(self.rnn(self.embed(ids))[0])


def main():
    device, rank, world = init_distributed()
    net = Tagger().to(device)
    if world > 1:
        net = DDP(net, device_ids=[device.index])
    opt = torch.optim.Adam(net.parameters())
    for step in range(100):
        ids = torch.randint(0, 500, (16, 20), device=device)
        gold = torch.randint(0, 9, (16, 20), device=device)
        loss = torch.nn.functional.cross_entropy(net(ids).flatten(0, 1), gold.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
