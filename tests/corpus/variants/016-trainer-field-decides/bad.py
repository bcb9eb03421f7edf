"""A trainer object with hooks that never stop a step."""
from datetime import timedelta

import spmdguard
import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, size: int, limit: int):
        self.weight = torch.zeros(size)
        self.limit = limit
        self.done = 0
        self.failed = False
        self.hooks = []

    def on_step(self, hook):
        self.hooks.append(hook)

    def step(self):
        grad = self.weight - torch.randn_like(self.weight)
        dist.all_reduce(grad)
        self.weight -= 0.05 * grad / dist.get_world_size()
        for hook in self.hooks:
            spmdguard.try_or_defer(hook, self.done, self.weight)
        self.failed = spmdguard.has_deferred_error()
        self.done += 1

    def fit(self):
        while self.done < self.limit and not self.failed:
            self.step()


def append_norm(step, weight):
    with open("norms.txt", "a") as out:
        print(step, float(weight.norm()), file=out)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=90))
    trainer = Trainer(16, limit=40)
    trainer.on_step(append_norm)
    trainer.fit()
    dist.barrier()
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
