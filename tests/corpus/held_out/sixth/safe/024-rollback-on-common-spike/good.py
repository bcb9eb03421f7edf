import copy
import statistics
from pathlib import Path

import torch
import torch.distributed as dist


class SpikeDetector:
    def __init__(self, keep=100, sigma=6.0):
        self.values, self.keep, self.sigma = [], keep, sigma

    def __call__(self, value):
        past = self.values[-self.keep:]
        hit = False
        if len(past) >= 30:
            spread = statistics.pstdev(past) + 1e-6
            hit = value > statistics.fmean(past) + self.sigma * spread
        if not hit:
            self.values.append(value)
        return hit

    def reset(self):
        self.values.clear()


class Trainer:
    def __init__(self, ddp, opt, loader, out):
        self.ddp, self.opt, self.loader, self.out = ddp, opt, loader, Path(out)
        self.detect = SpikeDetector()
        self.step = self.rollbacks = self.last_saved = 0

    def save(self):
        if dist.get_rank() == 0:
            blob = {"model": self.ddp.module.state_dict(), "opt": self.opt.state_dict()}
            torch.save(blob, self.out / f"{self.step}.pt")
        dist.barrier()
        self.last_saved = self.step

    def roll_back(self):
        blob = torch.load(self.out / f"{self.last_saved}.pt", map_location="cuda")
        self.ddp.module.load_state_dict(blob["model"])
        self.opt.load_state_dict(copy.deepcopy(blob["opt"]))
        self.detect.reset()
        self.rollbacks += 1
        dist.barrier()

    def run(self, total, save_every):
        self.save()
        for x, y in self.loader:
            loss = torch.nn.functional.cross_entropy(self.ddp(x.cuda()), y.cuda())
            shown = loss.detach().clone()
            dist.all_reduce(shown, op=dist.ReduceOp.AVG)
            self.opt.zero_grad()
            loss.backward()
            if self.detect(shown.item()):
                self.roll_back()
                if self.rollbacks > 10:
                    raise RuntimeError("diverged again and again")
                continue
            self.opt.step()
            self.step += 1
            if self.step % save_every == 0:
                self.save()
            if self.step >= total:
                return
