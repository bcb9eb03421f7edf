"""Image classification.

    torchrun --nproc_per_node=8 train.py --data ./images --model resnet50
"""
import argparse
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel as NativeDDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import transforms as T

parser = argparse.ArgumentParser(description="training")
parser.add_argument("--data", required=True)
parser.add_argument("--model", default="resnet18")
parser.add_argument("--epochs", type=int, default=90)
parser.add_argument("-b", "--batch-size", type=int, default=128)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
parser.add_argument("--output", default="model.pth")


def random_seed(seed, rank):
    torch.manual_seed(seed + rank)
    np.random.seed(seed + rank)
    random.seed(seed + rank)


def create_loader(args):
    crop = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])
    dataset = torchvision.datasets.ImageFolder(os.path.join(args.data, "train"), crop)
    sampler = DistributedSampler(dataset) if args.distributed else None
    return DataLoader(dataset, args.batch_size, sampler=sampler, shuffle=sampler is None,
                      num_workers=8, drop_last=True), len(dataset.classes)


def main():
    args = parser.parse_args()
    args.distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    args.device = f"cuda:{args.local_rank}"
    torch.cuda.set_device(args.local_rank)
    if args.distributed:
        dist.init_process_group(backend="nccl", init_method="env://")
    random_seed(args.seed, args.local_rank)
    loader, classes = create_loader(args)
    model = torchvision.models.get_model(args.model, num_classes=classes).to(args.device)
    if args.distributed:
        model = NativeDDP(model, device_ids=[args.local_rank])
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, nesterov=True)
    for epoch in range(args.epochs):
        if args.distributed:
            loader.sampler.set_epoch(epoch)
        for images, target in loader:
            loss = torch.nn.functional.cross_entropy(model(images.to(args.device)), target.to(args.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if args.local_rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}")
    if args.local_rank == 0:
        torch.save(getattr(model, "module", model).state_dict(), args.output)


if __name__ == "__main__":
    main()
