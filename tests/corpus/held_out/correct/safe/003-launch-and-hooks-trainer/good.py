"""A small hook-driven trainer with a multi-GPU launcher."""
import functools
import json
import os
import weakref
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel



def get_world_size():
    return dist.get_world_size() if dist.is_initialized() else 1


def get_rank():
    return dist.get_rank() if dist.is_initialized() else 0


def is_main_process():
    return get_rank() == 0


@functools.lru_cache()
def _gloo_group():
    """Group for pickled objects; made at first use, which all ranks reach together."""
    if dist.get_backend() == "nccl":
        return dist.new_group(backend="gloo")
    return dist.group.WORLD


def synchronize():
    if get_world_size() == 1:
        return
    if dist.get_backend() == "nccl":
        dist.barrier(device_ids=[torch.cuda.current_device()])
    else:
        dist.barrier()


def gather(data, dst=0):
    if get_world_size() == 1:
        return [data]
    group = _gloo_group()
    if get_rank() == dst:
        out = [None] * get_world_size()
        dist.gather_object(data, out, dst=dst, group=group)
        return out
    dist.gather_object(data, None, dst=dst, group=group)
    return []


def _worker(local_rank, main_func, world_size, url, args):
    use_cuda = torch.cuda.is_available()
    if use_cuda:
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if use_cuda else "gloo", init_method=url, rank=local_rank,
                            world_size=world_size, timeout=timedelta(minutes=30))
    synchronize()
    main_func(*args)
    dist.destroy_process_group()


def launch(main_func, num_gpus, url="tcp://127.0.0.1:29511", args=()):
    if num_gpus > 1:
        mp.start_processes(_worker, nprocs=num_gpus, args=(main_func, num_gpus, url, args), start_method="spawn")
    else:
        main_func(*args)


class HookBase:
    trainer = None

    def before_train(self): ...
    def after_step(self): ...
    def after_train(self): ...


class PeriodicWriter(HookBase):
    def __init__(self, path, period):
        self.path, self.period = path, period

    def after_step(self):
        if (self.trainer.iter + 1) % self.period == 0:
            with open(self.path, "a") as f:
                f.write(json.dumps({"iter": self.trainer.iter, **self.trainer.scalars}) + "\n")


class EvalHook(HookBase):
    def __init__(self, period, fn):
        self.period, self.fn = period, fn

    def _run(self):
        result = self.fn()
        if result:
            self.trainer.scalars.update(result)
        synchronize()

    def after_step(self):
        following = self.trainer.iter + 1
        if following % self.period == 0 and following != self.trainer.max_iter:
            self._run()

    def after_train(self):
        self._run()


class Checkpointer(HookBase):
    def __init__(self, period, folder):
        self.period, self.folder = period, folder

    def after_step(self):
        if (self.trainer.iter + 1) % self.period == 0 and is_main_process():
            net = self.trainer.model
            net = net.module if isinstance(net, DistributedDataParallel) else net
            torch.save(net.state_dict(), os.path.join(self.folder, f"model_{self.trainer.iter:07d}.pth"))


class Trainer:
    def __init__(self, model, data, optimizer, max_iter):
        self.model, self.data, self.optimizer, self.max_iter = model, iter(data), optimizer, max_iter
        self.scalars, self._hooks, self.iter = {}, [], 0

    def register_hooks(self, hooks):
        for h in hooks:
            if h is not None:
                h.trainer = weakref.proxy(self)
                self._hooks.append(h)

    def train(self):
        for h in self._hooks:
            h.before_train()
        for self.iter in range(self.max_iter):
            self.run_step()
            for h in self._hooks:
                h.after_step()
        for h in self._hooks:
            h.after_train()

    def run_step(self):
        x, y = next(self.data)
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scalars["loss"] = loss.item()


def endless(seed, device):
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(16, 8, generator=g)
        yield x.to(device), x.sum(1, keepdim=True).to(device)


def do_test(model, device):
    bare = model.module if isinstance(model, DistributedDataParallel) else model
    g = torch.Generator().manual_seed(1000 + get_rank())
    with torch.no_grad():
        x = torch.randn(64, 8, generator=g).to(device)
        err = (bare(x) - x.sum(1, keepdim=True)).pow(2).mean().item()
    errors = gather(err, dst=0)
    if not is_main_process():
        return {}
    return {"val_mse": sum(errors) / len(errors)}


def main(folder):
    device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    if is_main_process():
        os.makedirs(folder, exist_ok=True)
    synchronize()
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
    if get_world_size() > 1:
        ids = [device.index] if device.type == "cuda" else None
        model = DistributedDataParallel(model, device_ids=ids)
    trainer = Trainer(model, endless(get_rank(), device), torch.optim.SGD(model.parameters(), 0.01), 200)
    trainer.register_hooks([
        Checkpointer(50, folder),
        EvalHook(40, lambda: do_test(model, device)),
        PeriodicWriter(os.path.join(folder, "metrics.json"), 20) if is_main_process() else None,
    ])
    trainer.train()


if __name__ == "__main__":
    launch(main, torch.cuda.device_count() or 2, args=("output",))
