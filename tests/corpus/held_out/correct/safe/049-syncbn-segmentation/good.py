"""Semantic segmentation with SyncBatchNorm and a reduced confusion matrix."""
import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class ConfusionMatrix:
    def __init__(self, classes):
        self.classes, self.mat = classes, None

    def update(self, target, pred):
        if self.mat is None:
            self.mat = torch.zeros(self.classes, self.classes, dtype=torch.int64, device=target.device)
        valid = (target >= 0) & (target < self.classes)
        index = self.classes * target[valid] + pred[valid]
        self.mat += torch.bincount(index, minlength=self.classes ** 2).view_as(self.mat)

    def reduce_from_all_processes(self, device):
        if self.mat is None:
            self.mat = torch.zeros(self.classes, self.classes, dtype=torch.int64, device=device)
        dist.all_reduce(self.mat)

    def iou(self):
        h = self.mat.float()
        inter = h.diag()
        return inter / (h.sum(0) + h.sum(1) - inter).clamp(min=1)


class Shapes(Dataset):
    """Squares and stripes with pixel labels; every index is its own seed."""

    def __init__(self, n, offset, size=128):
        self.n, self.offset, self.size = n, offset, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.offset + i)
        label = torch.zeros(self.size, self.size, dtype=torch.long)
        for kind in (1, 2):
            top, left = (int(torch.randint(0, self.size - 40, (1,), generator=g)) for _ in range(2))
            if kind == 1:
                label[top:top + 40, left:left + 40] = 1
            else:
                label[:, left:left + 12] = 2
        image = label.float().div(2).expand(3, -1, -1) + 0.2 * torch.randn(3, self.size, self.size, generator=g)
        return image, label


def criterion(out, target):
    loss = nn.functional.cross_entropy(out["out"], target, ignore_index=255)
    if "aux" in out:
        loss = loss + 0.5 * nn.functional.cross_entropy(out["aux"], target, ignore_index=255)
    return loss


def train_one_epoch(model, loader, optimizer, scheduler, scaler, device):
    model.train()
    for image, target in loader:
        image, target = image.to(device), target.to(device)
        with torch.autocast("cuda", enabled=scaler.is_enabled()):
            loss = criterion(model(image), target)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()


@torch.inference_mode()
def evaluate(model, loader, device, classes):
    model.eval()
    matrix = ConfusionMatrix(classes)
    for image, target in loader:
        matrix.update(target.to(device).flatten(), model(image.to(device))["out"].argmax(1).flatten())
    matrix.reduce_from_all_processes(device)
    return matrix.iou()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=30)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--amp", action="store_true")
    ap.add_argument("--resume", default="")
    ap.add_argument("--output", default="segmentation.pth")
    args = ap.parse_args()

    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=15))
    dist.barrier()
    is_master = dist.get_rank() == 0
    torch.manual_seed(0)

    train_set, val_set = Shapes(2000, 0), Shapes(203, 10_000)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, args.batch, sampler=sampler, num_workers=4, drop_last=True)
    val_loader = DataLoader(val_set, 4, sampler=DistributedSampler(val_set, shuffle=False), num_workers=4)

    net = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=3, aux_loss=True)
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net).to(device)
    model = DistributedDataParallel(net, device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    total = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: max(0.0, 1 - i / total) ** 0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)

    first = 0
    if args.resume:
        blob = torch.load(args.resume, map_location=device)
        net.load_state_dict(blob["model"])
        optimizer.load_state_dict(blob["optimizer"])
        scheduler.load_state_dict(blob["scheduler"])
        scaler.load_state_dict(blob["scaler"])
        first = blob["epoch"] + 1
        dist.barrier()  # nobody overwrites the file before all have read it

    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(model, train_loader, optimizer, scheduler, scaler, device)
        iou = evaluate(model, val_loader, device, classes=3)
        if is_master:
            print(f"epoch {epoch}: mean IoU {iou.mean().item():.4f} {[round(v, 3) for v in iou.tolist()]}")
            torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch,
                        "scheduler": scheduler.state_dict(), "scaler": scaler.state_dict()}, args.output)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
