#!/usr/bin/env python3
import argparse
import logging
import os
from collections import OrderedDict
from copy import deepcopy
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from timm import create_model
from timm.data import create_dataset, create_loader
from torch.nn.parallel import DistributedDataParallel as NativeDDP

_logger = logging.getLogger("train")


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class ModelEma(nn.Module):
    def __init__(self, model, decay):
        super().__init__()
        self.module = deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
            if e.dtype.is_floating_point:
                e.lerp_(m, 1.0 - self.decay)
            else:
                e.copy_(m)


class Saver:
    def __init__(self, folder, keep=3):
        self.folder, self.keep, self.files = folder, keep, []
        os.makedirs(folder, exist_ok=True)

    def save(self, model, ema, epoch, metric):
        path = os.path.join(self.folder, f"checkpoint-{epoch}.pth.tar")
        torch.save({"state_dict": model.state_dict(), "state_dict_ema": ema.module.state_dict(),
                    "epoch": epoch, "metric": metric}, path)
        self.files.append((metric, path))
        self.files.sort(reverse=True)
        for _, stale in self.files[self.keep:]:
            os.remove(stale)
        self.files = self.files[:self.keep]


def reduce_tensor(tensor, n):
    rt = tensor.clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)
    return rt / n


def distribute_bn(model, world_size, reduce=False):
    for name, buf in model.named_buffers(recurse=True):
        if "running_mean" in name or "running_var" in name:
            if reduce:
                dist.all_reduce(buf, op=dist.ReduceOp.SUM)
                buf /= float(world_size)
            else:
                dist.broadcast(buf, 0)


def train_one_epoch(epoch, model, ema, loader, optimizer, loss_fn, args):
    model.train()
    losses = AverageMeter()
    last_idx = len(loader) - 1
    for i, (inputs, target) in enumerate(loader):
        loss = loss_fn(model(inputs), target)
        optimizer.zero_grad()
        loss.backward()
        if args.clip_grad:
            nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        optimizer.step()
        ema.update(model.module if args.distributed else model)
        if i == last_idx or i % args.log_interval == 0:
            shown = loss.detach()
            if args.distributed:
                shown = reduce_tensor(shown, args.world_size)
            losses.update(shown.item(), inputs.size(0))
            if args.rank == 0:
                _logger.info("Train: %d [%d/%d] loss %.4f", epoch, i, last_idx, losses.avg)
    return OrderedDict(loss=losses.avg)


@torch.no_grad()
def validate(model, loader, loss_fn, args):
    model.eval()
    losses, top1 = AverageMeter(), AverageMeter()
    for inputs, target in loader:
        out = model(inputs)
        loss = loss_fn(out, target)
        acc = (out.argmax(1) == target).float().mean()
        if args.distributed:
            loss, acc = reduce_tensor(loss, args.world_size), reduce_tensor(acc, args.world_size)
        losses.update(loss.item(), inputs.size(0))
        top1.update(acc.item(), out.size(0))
    return OrderedDict(loss=losses.avg, top1=top1.avg)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("data_dir")
    p.add_argument("--model", default="resnet18")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--clip-grad", type=float, default=None)
    p.add_argument("--log-interval", type=int, default=50)
    p.add_argument("--dist-bn", choices=["", "reduce", "broadcast"], default="reduce")
    p.add_argument("--patience", type=int, default=20)
    p.add_argument("--output", default="./output")
    args = p.parse_args()

    args.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    args.distributed = args.world_size > 1
    args.rank = 0
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    if args.distributed:
        dist.init_process_group("nccl", init_method="env://", timeout=timedelta(minutes=30))
        args.rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if args.rank == 0 else logging.WARNING)
    torch.manual_seed(42 + args.rank)

    model = create_model(args.model, num_classes=1000).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    ema = ModelEma(model, 0.9998)
    bare = model
    if args.distributed:
        model = NativeDDP(model, device_ids=[local_rank], broadcast_buffers=False)
        ema.module.load_state_dict(model.module.state_dict())

    make = lambda split, training: create_loader(
        create_dataset("", root=args.data_dir, split=split, is_training=training),
        input_size=(3, 224, 224), batch_size=args.batch_size, is_training=training,
        distributed=args.distributed, device=device)
    train_loader, eval_loader = make("train", True), make("validation", False)
    loss_fn = nn.CrossEntropyLoss().to(device)
    saver = Saver(args.output) if args.rank == 0 else None

    best, best_epoch = -1.0, 0
    for epoch in range(args.epochs):
        if args.distributed and hasattr(train_loader.sampler, "set_epoch"):
            train_loader.sampler.set_epoch(epoch)
        train_one_epoch(epoch, model, ema, train_loader, optimizer, loss_fn, args)
        if args.distributed and args.dist_bn in ("broadcast", "reduce"):
            distribute_bn(bare, args.world_size, args.dist_bn == "reduce")
            distribute_bn(ema.module, args.world_size, args.dist_bn == "reduce")
        metrics = validate(bare, eval_loader, loss_fn, args)
        ema_metrics = validate(ema.module, eval_loader, loss_fn, args)
        if args.rank == 0:
            _logger.info("epoch %d top1 %.4f ema %.4f", epoch, metrics["top1"], ema_metrics["top1"])
        if saver is not None:
            saver.save(bare, ema, epoch, ema_metrics["top1"])
        if ema_metrics["top1"] > best:
            best, best_epoch = ema_metrics["top1"], epoch
        if epoch - best_epoch >= args.patience:
            break
    if args.distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
