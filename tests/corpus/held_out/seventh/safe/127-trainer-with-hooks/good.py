"""A trainer with hooks; some act on the main process only, some reduce first."""

import json
import os
import signal
import tempfile
import time
from collections import defaultdict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Hook:
    """All methods are called on all ranks, in the order the hooks were added."""

    main_only = False

    def before_train(self, trainer):
        pass

    def after_step(self, trainer):
        pass

    def after_train(self, trainer):
        pass


class StepLog(Hook):
    main_only = True

    def __init__(self, path, every=10):
        self.path, self.every, self.file = path, every, None

    def before_train(self, trainer):
        self.file = open(self.path, "a", encoding="utf-8")

    def after_step(self, trainer):
        if trainer.step % self.every == 0:
            row = {"step": trainer.step, **trainer.shown}
            self.file.write(json.dumps(row) + "\n")

    def after_train(self, trainer):
        self.file.close()


class MeanMeters(Hook):
    """Average what the steps recorded; ``trainer.shown`` is equal on all ranks."""

    def __init__(self, every=10):
        self.every = every

    def after_step(self, trainer):
        if trainer.step % self.every != 0:
            return
        names = sorted(trainer.recorded)
        sums = torch.tensor([[sum(trainer.recorded[n]), len(trainer.recorded[n])] for n in names])
        dist.all_reduce(sums)
        for name, (total, count) in zip(names, sums.tolist()):
            trainer.shown[name] = total / max(count, 1)
        for values in trainer.recorded.values():
            values.clear()


class Deadline(Hook):
    """The main process watches the clock, and all follow what it says."""

    def __init__(self, seconds, every=5):
        self.seconds, self.every, self.began = seconds, every, None

    def before_train(self, trainer):
        if trainer.rank == 0:
            self.began = time.monotonic()

    def after_step(self, trainer):
        if trainer.step % self.every:
            return
        over = torch.zeros(1)
        if trainer.rank == 0 and time.monotonic() - self.began > self.seconds:
            over.fill_(1)
        dist.broadcast(over, src=0)
        if over.item():
            trainer.stop("deadline")


class Preemption(Hook):
    def __init__(self, every=2):
        self.every, self.noticed = every, False

    def before_train(self, trainer):
        signal.signal(signal.SIGUSR1, self._notice)

    def _notice(self, signum, frame):
        self.noticed = True

    def after_step(self, trainer):
        if trainer.step % self.every == 0:
            flag = torch.tensor([float(self.noticed)])
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            if flag.item() > 0:
                trainer.stop("preempted")


class Saver(Hook):
    def __init__(self, folder, every):
        self.folder, self.every = folder, every

    def _save(self, trainer, name):
        if trainer.rank == 0:
            path = os.path.join(self.folder, name)
            torch.save(trainer.model.module.state_dict(), path + ".tmp")
            os.replace(path + ".tmp", path)
        dist.barrier()

    def after_step(self, trainer):
        if trainer.step % self.every == 0 or trainer.stopping is not None:
            self._save(trainer, f"step{trainer.step}.pt")

    def after_train(self, trainer):
        self._save(trainer, "final.pt")


class Trainer:
    def __init__(self, model, opt, batches, hooks, max_steps):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.model, self.opt, self.batches = model, opt, batches
        self.max_steps, self.step, self.stopping = max_steps, 0, None
        self.recorded, self.shown = defaultdict(list), {}
        self.hooks = [h for h in hooks if self.rank == 0 or not h.main_only]

    def stop(self, reason):
        if self.stopping is None:
            self.stopping = reason

    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def train_step(self, batch):
        self.opt.zero_grad()
        loss = self.model(batch).pow(2).mean()
        loss.backward()
        self.opt.step()
        self.recorded["loss"].append(loss.item())
        self.recorded["items"].append(float(len(batch)))

    def train(self):
        self.call("before_train")
        for batch in self.batches:
            self.step += 1
            self.train_step(batch)
            self.call("after_step")
            if self.stopping is not None or self.step >= self.max_steps:
                break
        self.call("after_train")
        return self.stopping or "done"


def endless(rank, size):
    gen = torch.Generator().manual_seed(rank)
    while True:
        yield torch.randn(size, 12, generator=gen)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    box = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    folder = box[0]
    torch.manual_seed(0)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(12, 12), torch.nn.Linear(12, 3)))
    hooks = [
        MeanMeters(),
        StepLog(os.path.join(folder, "log.jsonl")),
        Deadline(seconds=600),
        Preemption(),
        Saver(folder, every=50),
    ]
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    result = Trainer(model, opt, endless(rank, 8), hooks, max_steps=120).train()
    if rank == 0:
        print(result, folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
