import random

import spmdguard
import torch
import torch.distributed as dist


class LocalSGD:
    def __init__(self, model, period):
        self.model, self.period = model, period
        self.opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.count = 0

    def step(self, x, y):
        self.opt.zero_grad()
        loss = (self.model(x) - y).square().mean()
        loss.backward()
        self.opt.step()
        self.count += 1
        if self.count % self.period == 0:
            self.merge()
        return loss.item()

    @spmdguard.collective(name="merge")
    def merge(self):
        handles = [dist.all_reduce(p.data, async_op=True) for p in self.model.parameters()]
        for handle, p in zip(handles, self.model.parameters()):
            handle.wait()
            p.data /= dist.get_world_size()


@spmdguard.rank_local(only="main")
def progress(i, loss):
    print(f"iteration {i}: {loss:.5f}", flush=True)


def main(iterations=3000):
    spmdguard.init_process_group("gloo")
    random.seed(dist.get_rank())
    model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    sgd = LocalSGD(model, period=8)
    for i in range(iterations):
        x = torch.randn(16, 5) * random.uniform(0.5, 1.5)
        loss = sgd.step(x, x.prod(1, keepdim=True))
        progress(i, loss)
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
