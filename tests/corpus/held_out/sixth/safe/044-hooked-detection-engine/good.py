import datetime
import itertools
import json
import logging
import time
import weakref
from collections import OrderedDict
from pathlib import Path

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("det")


def world():
    return dist.get_world_size() if dist.is_initialized() else 1


def main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def synchronize():
    if world() > 1:
        dist.barrier()


def gather_to_main(obj):
    if world() == 1:
        return [obj]
    out = [None] * world() if main_process() else None
    dist.gather_object(obj, out, dst=0)
    return out if out is not None else []


class Hook:
    trainer = None

    def before_train(self):
        pass

    def after_step(self):
        pass

    def after_train(self):
        pass


class Timer(Hook):
    def before_train(self):
        self.start = time.perf_counter()

    def after_train(self):
        spent = datetime.timedelta(seconds=int(time.perf_counter() - self.start))
        log.info("%d iterations in %s", self.trainer.iter + 1, spent)


class JsonWriter(Hook):
    def __init__(self, path, period=20):
        self.file, self.period = open(path, "a"), period

    def after_step(self):
        if (self.trainer.iter + 1) % self.period == 0:
            row = {"iter": self.trainer.iter, **self.trainer.latest}
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()

    def after_train(self):
        self.file.close()


class Evaluation(Hook):
    def __init__(self, period, fn):
        self.period, self.fn = period, fn

    def _run(self):
        results = self.fn()
        if results:
            for k, v in results.items():
                self.trainer.latest[k] = v
        synchronize()

    def after_step(self):
        nxt = self.trainer.iter + 1
        if self.period > 0 and nxt % self.period == 0 and nxt != self.trainer.max_iter:
            self._run()

    def after_train(self):
        if self.trainer.iter + 1 >= self.trainer.max_iter:
            self._run()


class Checkpoint(Hook):
    def __init__(self, out, period):
        self.out, self.period = Path(out), period

    def after_step(self):
        nxt = self.trainer.iter + 1
        if nxt % self.period and nxt != self.trainer.max_iter:
            return
        if main_process():
            blob = {"model": self.trainer.model.module.state_dict(), "iter": self.trainer.iter,
                    "optimizer": self.trainer.optimizer.state_dict()}
            torch.save(blob, self.out / f"model_{self.trainer.iter:07d}.pth")
            (self.out / "last").write_text(str(self.trainer.iter))
        synchronize()


class Trainer:
    def __init__(self, cfg, model, loader):
        self.cfg = cfg
        self.model = DistributedDataParallel(model.cuda(), device_ids=[torch.cuda.current_device()])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=0.9)
        self.loader = loader
        self.iter, self.start, self.max_iter = 0, 0, cfg.max_iter
        self.latest, self._hooks = {}, []

    def register(self, hooks):
        for h in hooks:
            if h is not None:
                h.trainer = weakref.proxy(self)
                self._hooks.append(h)

    def build_hooks(self, evaluate):
        hooks = [Timer() if main_process() else None,
                 Checkpoint(self.cfg.out, self.cfg.ckpt_period),
                 Evaluation(self.cfg.eval_period, evaluate)]
        if main_process():
            hooks.append(JsonWriter(Path(self.cfg.out) / "metrics.json"))
        self.register(hooks)

    def step(self, data):
        losses = self.model(data)
        total = sum(losses.values())
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        names = sorted(losses)
        stacked = torch.stack([losses[n].detach() for n in names])
        dist.all_reduce(stacked)
        stacked /= world()
        if not torch.isfinite(stacked).all():
            raise FloatingPointError(f"iteration {self.iter}: {dict(zip(names, stacked.tolist()))}")
        if main_process():
            self.latest.update(zip(names, stacked.tolist()))

    def train(self):
        for h in self._hooks:
            h.before_train()
        source = itertools.chain.from_iterable(self.loader for _ in itertools.count())
        for self.iter in range(self.start, self.max_iter):
            self.step(next(source))
            for h in self._hooks:
                h.after_step()
        for h in self._hooks:
            h.after_train()


def inference(model, loader, scorer):
    model.eval()
    rows = []
    with torch.no_grad():
        for batch in loader:
            rows.extend(zip((b["image_id"] for b in batch), (o.to("cpu") for o in model.module.predict(batch))))
    model.train()
    synchronize()
    parts = gather_to_main(rows)
    if not main_process():
        return {}
    unique = OrderedDict(sorted(itertools.chain.from_iterable(parts), key=lambda r: r[0]))
    return scorer(unique)
