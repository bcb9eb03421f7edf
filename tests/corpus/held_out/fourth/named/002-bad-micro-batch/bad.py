import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Accumulator:
    def __init__(self, model, optimizer, every):
        self.model, self.optimizer, self.every = model, optimizer, every

    def context(self, index):
        last = (index + 1) % self.every == 0
        return contextlib.nullcontext() if last else self.model.no_sync()


def train_epoch(acc, batches, loss_fn):
    skipped = 0
    for index, (inputs, targets) in enumerate(batches):
        with acc.context(index):
            loss = loss_fn(acc.model(inputs), targets) / acc.every
            if not torch.isfinite(loss):
                skipped += 1
                continue
            loss.backward()
        if (index + 1) % acc.every == 0:
            acc.optimizer.step()
            acc.optimizer.zero_grad(set_to_none=True)
    return skipped


def main(batches):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(10, 10))
    acc = Accumulator(model, torch.optim.SGD(model.parameters(), lr=0.1), every=4)
    print(dist.get_rank(), train_epoch(acc, batches, torch.nn.functional.poisson_nll_loss))
    dist.destroy_process_group()
