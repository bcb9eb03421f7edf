import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class StoppingCounter:
    def __init__(self, limit, patience):
        self.limit, self.patience = limit, patience
        self.current, self.best, self.worse = 0, float("inf"), 0

    def feed(self, loss):
        self.worse = 0 if loss < self.best else self.worse + 1
        self.best = min(self.best, loss)

    def __iter__(self):
        while self.current < self.limit and self.worse < self.patience:
            self.current += 1
            yield self.current


class Brain:
    def __init__(self, net, opt, counter):
        self.model, self.opt, self.counter = DDP(net), opt, counter

    def run_epoch(self, batches, train):
        total = torch.zeros(2)
        with torch.set_grad_enabled(train):
            for x, y in batches:
                loss = torch.nn.functional.mse_loss(self.model(x), y)
                if train:
                    loss.backward()
                    self.opt.step()
                    self.opt.zero_grad()
                total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    def on_stage_end(self, loss):
        self.counter.feed(loss)
        if dist.get_rank() == 0:
            torch.save(self.model.module.state_dict(), f"epoch{self.counter.current}.pt")

    def fit(self, train_set, valid_set):
        for _ in self.counter:
            self.run_epoch(train_set, train=True)
            loss = self.run_epoch(valid_set, train=False)
            self.on_stage_end(loss)
