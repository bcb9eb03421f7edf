import argparse
import os
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

LOCAL_RANK = int(os.getenv("LOCAL_RANK", -1))
RANK = int(os.getenv("RANK", -1))


@contextmanager
def zero_first(rank):
    if rank not in (-1, 0):
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


def scan_labels(path):
    cache = path + ".cache.pt"
    if os.path.exists(cache):
        return torch.load(cache)
    blob = {"img": torch.rand(512, 3, 32, 32), "cls": torch.randint(0, 10, (512,))}
    torch.save(blob, cache)
    return blob


def make_loader(path, batch, rank, shuffle=False):
    with zero_first(rank):
        blob = scan_labels(path)
    dataset = TensorDataset(blob["img"], blob["cls"])
    sampler = DistributedSampler(dataset, shuffle=shuffle) if rank != -1 else None
    return DataLoader(dataset, batch, shuffle=shuffle and sampler is None, sampler=sampler)


@torch.no_grad()
def validate(net, loader, device):
    net.eval()
    hits = sum((net(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in loader)
    net.train()
    return hits / len(loader.dataset)


def train(opt):
    device = torch.device("cuda", max(LOCAL_RANK, 0))
    train_loader = make_loader(opt.train, opt.batch, RANK, shuffle=True)
    if RANK in (-1, 0):
        val_loader = make_loader(opt.val, opt.batch * 2, -1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    model = DDP(net, device_ids=[LOCAL_RANK]) if RANK != -1 else net
    opt_ = torch.optim.SGD(model.parameters(), lr=opt.lr)
    for epoch in range(opt.epochs):
        if RANK != -1:
            train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            opt_.zero_grad()
            loss.backward()
            opt_.step()
        if RANK in (-1, 0):
            print(epoch, validate(net, val_loader, device))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", default="train")
    parser.add_argument("--val", default="val")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=3)
    if LOCAL_RANK != -1:
        torch.cuda.set_device(LOCAL_RANK)
        dist.init_process_group("nccl")
    train(parser.parse_args())
