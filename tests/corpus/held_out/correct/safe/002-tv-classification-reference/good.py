import argparse
import datetime
import os
import time
from collections import defaultdict, deque

import torch
import torch.distributed as dist
import torch.utils.data
import torchvision
from torch import nn
from torchvision import transforms as T


class SmoothedValue:
    def __init__(self, window_size=20):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    def synchronize_between_processes(self):
        packed = reduce_across_processes([self.count, self.total])
        self.count = int(packed[0])
        self.total = packed[1]

    @property
    def global_avg(self):
        return self.total / max(self.count, 1)


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, n=1, **kwargs):
        for key, val in kwargs.items():
            self.meters[key].update(float(val), n=n)

    def synchronize_between_processes(self):
        for meter in self.meters.values():
            meter.synchronize_between_processes()

    def log_every(self, iterable, freq, header):
        start = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if i % freq == 0:
                line = self.delimiter.join(f"{k}: {m.global_avg:.4f}" for k, m in self.meters.items())
                print(f"{header} [{i}/{len(iterable)}] {line}")
        print(f"{header} took {datetime.timedelta(seconds=int(time.time() - start))}")


def is_dist_avail_and_initialized():
    return dist.is_available() and dist.is_initialized()


def get_rank():
    return dist.get_rank() if is_dist_avail_and_initialized() else 0


def reduce_across_processes(val):
    if not is_dist_avail_and_initialized():
        return torch.tensor(val, dtype=torch.float64).tolist()
    t = torch.tensor(val, dtype=torch.float64, device="cuda")
    dist.barrier()
    dist.all_reduce(t)
    return t.tolist()


def save_on_master(*args, **kwargs):
    if get_rank() == 0:
        torch.save(*args, **kwargs)


def quiet_other_ranks(is_master):
    import builtins
    plain = builtins.print

    def printer(*args, **kwargs):
        if kwargs.pop("force", False) or is_master:
            plain(*args, **kwargs)
    builtins.print = printer


def init_distributed_mode(args):
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        args.distributed = False
        return
    args.distributed = True
    args.rank = int(os.environ["RANK"])
    args.gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(args.gpu)
    dist.init_process_group("nccl", init_method=args.dist_url, timeout=datetime.timedelta(minutes=15))
    dist.barrier()
    quiet_other_ranks(args.rank == 0)


def train_one_epoch(model, criterion, optimizer, loader, device, epoch):
    model.train()
    log = MetricLogger()
    for image, target in log.log_every(loader, 50, f"Epoch {epoch}"):
        image, target = image.to(device), target.to(device)
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.update(n=image.shape[0], loss=loss.item(), lr=optimizer.param_groups[0]["lr"])


def evaluate(model, criterion, loader, device):
    model.eval()
    log = MetricLogger()
    with torch.inference_mode():
        for image, target in log.log_every(loader, 100, "Test"):
            image, target = image.to(device), target.to(device)
            out = model(image)
            acc = (out.argmax(1) == target).float().mean() * 100
            log.update(n=image.shape[0], loss=criterion(out, target).item(), acc1=acc.item())
    log.synchronize_between_processes()
    print(f"Test: loss {log.meters['loss'].global_avg:.3f} acc1 {log.meters['acc1'].global_avg:.3f}")
    return log.meters["acc1"].global_avg


def main(args):
    init_distributed_mode(args)
    if args.output_dir:
        os.makedirs(args.output_dir, exist_ok=True)
    device = torch.device("cuda")
    tf = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()])
    train_set = torchvision.datasets.ImageFolder(os.path.join(args.data_path, "train"), tf)
    val_set = torchvision.datasets.ImageFolder(os.path.join(args.data_path, "val"), tf)
    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(train_set)
        val_sampler = torch.utils.data.distributed.DistributedSampler(val_set, shuffle=False)
    else:
        train_sampler = torch.utils.data.RandomSampler(train_set)
        val_sampler = torch.utils.data.SequentialSampler(val_set)
    train_loader = torch.utils.data.DataLoader(train_set, args.batch_size, sampler=train_sampler, num_workers=8)
    val_loader = torch.utils.data.DataLoader(val_set, args.batch_size, sampler=val_sampler, num_workers=8)

    model = torchvision.models.resnet50(num_classes=len(train_set.classes)).to(device)
    if args.distributed:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    bare = model
    if args.distributed:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        bare = model.module

    if args.test_only:
        evaluate(model, criterion, val_loader, device)
    else:
        for epoch in range(args.epochs):
            if args.distributed:
                train_sampler.set_epoch(epoch)
            train_one_epoch(model, criterion, optimizer, train_loader, device, epoch)
            scheduler.step()
            evaluate(model, criterion, val_loader, device)
            if args.output_dir:
                blob = {"model": bare.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                save_on_master(blob, os.path.join(args.output_dir, "checkpoint.pth"))
    if args.distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--data-path", default="/data/imagenet")
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--epochs", type=int, default=90)
    p.add_argument("--output-dir", default="")
    p.add_argument("--dist-url", default="env://")
    p.add_argument("--test-only", action="store_true")
    main(p.parse_args())
