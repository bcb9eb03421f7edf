"""CIFAR fine-tuning; the local leader of each node downloads the archive before its peers open it."""
import os
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, models, transforms


def local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", 0))


@contextmanager
def local_leader_first():
    """Let local rank 0 run the body while the other ranks of the job wait."""
    if not (dist.is_available() and dist.is_initialized()):
        yield
        return
    if local_rank() != 0:
        dist.barrier()
        yield
    else:
        yield
        dist.barrier()


def build_loader(root: str, batch_size: int):
    tf = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
    with local_leader_first():
        train = datasets.CIFAR10(root, train=True, transform=tf, download=True)
    sampler = DistributedSampler(train, shuffle=True, drop_last=True)
    return DataLoader(train, batch_size=batch_size, sampler=sampler, num_workers=4, drop_last=True), sampler


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(local_rank())
    device = torch.device("cuda", local_rank())
    loader, sampler = build_loader(os.environ.get("DATA", "/tmp/cifar"), 128)
    model = DDP(models.resnet18(num_classes=10).to(device), device_ids=[local_rank()])
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
