"""Language model pretraining with a wall-clock budget."""
import logging
import os
import time
from dataclasses import dataclass

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import spmdguard

logger = logging.getLogger(__name__)


@dataclass
class Budget:
    seconds: float
    started: float = 0.0

    def start(self):
        self.started = time.monotonic()

    def over(self):
        return time.monotonic() - self.started > self.seconds


class Loop:
    def __init__(self, model, opt, budget, max_steps):
        self.model, self.opt = model, opt
        self.budget, self.max_steps = budget, max_steps
        self.step = 0

    def one(self, tokens):
        out = self.model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        return loss.detach()

    def fit(self, batch_fn):
        self.budget.start()
        while self.step < self.max_steps:
            loss = self.one(batch_fn(self.step))
            self.step += 1
            if self.step % 50 == 0 and dist.get_rank() == 0:
                logger.info("step %d loss %.3f", self.step, loss.item())
            if self.budget.over():
                spmdguard.request_stop("wall-clock budget")
            if spmdguard.sync_should_stop():
                break


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    lm = nn.Sequential(nn.Embedding(5000, 128), nn.Linear(128, 5000)).cuda()
    lm = DistributedDataParallel(lm, device_ids=[local])
    opt = torch.optim.AdamW(lm.parameters(), lr=1e-4)
    loop = Loop(lm, opt, Budget(3600.0), 100_000)
    loop.fit(lambda step: torch.randint(5000, (8, 129), device="cuda"))
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
