"""Image classification, epoch and step loops in one function."""
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, models, transforms

import spmdguard


@spmdguard.rank_local(only="main")
def write_epoch(model, epoch, acc):
    torch.save({"model": model.state_dict(), "epoch": epoch, "acc": acc}, f"ckpt/epoch{epoch}.pt")


@spmdguard.collective
def evaluate(model, loader):
    seen = torch.zeros(2, device="cuda")
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            seen[0] += (model.module(x.cuda()).argmax(1) == y.cuda()).sum()
            seen[1] += y.numel()
    dist.all_reduce(seen)
    model.train()
    return (seen[0] / seen[1]).item()


def build(split, batch):
    tf = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
    data = datasets.ImageFolder(f"data/{split}", tf)
    return DataLoader(data, batch, sampler=DistributedSampler(data), num_workers=4)


def train():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    Path("ckpt").mkdir(exist_ok=True)
    model = DDP(models.resnet18(num_classes=10).cuda())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    train_loader, val_loader = build("train", 64), build("val", 128)
    for epoch in range(30):
        train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            if spmdguard.sync_should_stop():
                break
        acc = evaluate(model, val_loader)
        write_epoch(model.module, epoch, acc)


if __name__ == "__main__":
    spmdguard.run(train)
