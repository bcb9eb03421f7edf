import functools
import logging
import os
import os.path as osp
from collections import OrderedDict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def dist_info():
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def master_only(fn):
    @functools.wraps(fn)
    def wrapped(*a, **k):
        if dist_info()[0] == 0:
            return fn(*a, **k)
        return None
    return wrapped


def all_barrier():
    if dist_info()[1] > 1:
        dist.barrier()


class Hook:
    priority = 50

    def every(self, n, i):
        return n > 0 and (i + 1) % n == 0

    def before_run(self, runner): ...
    def before_train_epoch(self, runner): ...
    def after_train_iter(self, runner, loss): ...
    def after_train_epoch(self, runner): ...
    def after_val_epoch(self, runner, metrics): ...


class SeedHook(Hook):
    priority = 10

    def before_train_epoch(self, runner):
        if hasattr(runner.train_loader.sampler, "set_epoch"):
            runner.train_loader.sampler.set_epoch(runner.epoch)


class SyncBuffers(Hook):
    priority = 40

    def after_train_epoch(self, runner):
        world = dist_info()[1]
        if world == 1:
            return
        for name, buf in sorted(runner.raw.named_buffers()):
            if buf.is_floating_point():
                dist.all_reduce(buf.data)
                buf.data.div_(world)


class TextLog(Hook):
    priority = 60

    def __init__(self, interval):
        self.interval, self.window = interval, []

    def after_train_iter(self, runner, loss):
        self.window.append(loss.detach())
        if not self.every(self.interval, runner.iter):
            return
        mean = torch.stack(self.window).mean()
        self.window.clear()
        if dist_info()[1] > 1:
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        runner.info("epoch %d iter %d loss %.4f", runner.epoch, runner.iter, mean.item())


class Checkpoints(Hook):
    priority = 80

    def __init__(self, interval, keep=3, best="acc"):
        self.interval, self.keep, self.best_key = interval, keep, best
        self.best, self.saved = float("-inf"), []

    @master_only
    def write(self, runner, name):
        torch.save({"model": runner.raw.state_dict(), "optim": runner.optim.state_dict(),
                    "epoch": runner.epoch, "iter": runner.iter}, osp.join(runner.work_dir, name))
        if name.startswith("epoch"):
            self.saved.append(name)
            while len(self.saved) > self.keep:
                os.remove(osp.join(runner.work_dir, self.saved.pop(0)))

    def after_train_epoch(self, runner):
        if self.every(self.interval, runner.epoch):
            self.write(runner, f"epoch_{runner.epoch + 1}.pth")
            all_barrier()

    def after_val_epoch(self, runner, metrics):
        if metrics[self.best_key] > self.best:
            self.best = metrics[self.best_key]
            self.write(runner, "best.pth")
            all_barrier()


class EarlyStop(Hook):
    priority = 90

    def __init__(self, key, patience):
        self.key, self.patience, self.best, self.bad = key, patience, float("-inf"), 0

    def after_val_epoch(self, runner, metrics):
        improved = metrics[self.key] > self.best + 1e-4
        self.bad = 0 if improved else self.bad + 1
        self.best = max(self.best, metrics[self.key])
        if self.bad >= self.patience:
            runner.stop = True


class Runner:
    def __init__(self, model, train_set, val_set, optim, cfg):
        rank, world = dist_info()
        torch.cuda.set_device(rank % torch.cuda.device_count())
        self.model = model.cuda()
        if world > 1:
            self.model = DistributedDataParallel(self.model, broadcast_buffers=False)
        self.raw = self.model.module if world > 1 else self.model
        self.optim = optim(self.model.parameters())
        self.train_loader = DataLoader(train_set, cfg.batch, drop_last=True, num_workers=cfg.workers,
                                       sampler=DistributedSampler(train_set, world, rank))
        self.val_loader = DataLoader(val_set, cfg.batch, num_workers=cfg.workers,
                                     sampler=torch.utils.data.SubsetRandomSampler(range(rank, len(val_set), world)))
        self.cfg, self.work_dir = cfg, cfg.work_dir
        self.epoch = self.iter = 0
        self.stop = False
        self.hooks = []
        os.makedirs(self.work_dir, exist_ok=True)

    @master_only
    def info(self, *msg):
        logging.getLogger("runner").info(*msg)

    def add_hook(self, hook):
        self.hooks.append(hook)
        self.hooks.sort(key=lambda h: h.priority)

    def call(self, name, **kw):
        for hook in self.hooks:
            getattr(hook, name)(self, **kw)

    @torch.no_grad()
    def validate(self):
        self.raw.eval()
        part = []
        for x, y in self.val_loader:
            part.append((self.raw(x.cuda()).argmax(1).cpu(), y))
        pieces = [part]
        rank, world = dist_info()
        if world > 1:
            pieces = [None] * world if rank == 0 else None
            dist.gather_object(part, pieces, dst=0)
        box = [None]
        if rank == 0:
            pairs = [pair for piece in pieces for pair in piece]
            right = sum((p == t).sum().item() for p, t in pairs)
            box = [OrderedDict(acc=right / sum(len(t) for _, t in pairs))]
        if world > 1:
            dist.broadcast_object_list(box, src=0)
        self.raw.train()
        return box[0]

    def train(self):
        self.call("before_run")
        while self.epoch < self.cfg.epochs and not self.stop:
            self.call("before_train_epoch")
            for x, y in self.train_loader:
                loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
                self.call("after_train_iter", loss=loss)
                self.iter += 1
            self.call("after_train_epoch")
            if (self.epoch + 1) % self.cfg.val_interval == 0:
                self.call("after_val_epoch", metrics=self.validate())
            self.epoch += 1
