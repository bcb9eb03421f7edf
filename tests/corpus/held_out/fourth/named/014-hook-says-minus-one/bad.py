import statistics

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Callback:
    def on_train_batch_end(self, trainer, loss, batch_idx):
        return None


class SpikeGuard(Callback):
    """Asks for the next epoch after a loss far above the recent ones."""

    def __init__(self, factor=10.0, window=50):
        self.factor, self.window, self.recent = factor, window, []

    def on_train_batch_end(self, trainer, loss, batch_idx):
        self.recent = [*self.recent, loss][-self.window :]
        if len(self.recent) > 10 and loss > self.factor * statistics.median(self.recent):
            return -1
        return None


class Trainer:
    def __init__(self, module, optimizer_cls, callbacks=()):
        self.module = DistributedDataParallel(module)
        self.optimizer = optimizer_cls(self.module.parameters(), lr=1e-3)
        self.callbacks = list(callbacks)
        self.current_epoch = 0

    @staticmethod
    def mean_over_ranks(value):
        t = torch.tensor([value])
        dist.all_reduce(t)
        return t.item() / dist.get_world_size()

    def _call(self, hook, *args):
        return any([getattr(c, hook)(self, *args) == -1 for c in self.callbacks])

    def fit(self, loader, max_epochs):
        for self.current_epoch in range(max_epochs):
            for batch_idx, batch in enumerate(loader):
                loss = self.module(batch).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if self._call("on_train_batch_end", loss.item(), batch_idx):
                    break


def main(loader):
    dist.init_process_group("gloo")
    Trainer(torch.nn.Linear(12, 12), torch.optim.Adam, [SpikeGuard()]).fit(loader, max_epochs=20)
    dist.destroy_process_group()
