from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class StopWhenGood:
    def __init__(self, target):
        self.target = target

    def on_step_end(self, control, loss):
        if control.main and loss < self.target:
            control.stop = True


def share(control):
    verdict = torch.tensor([int(control.stop)])
    dist.broadcast(verdict, src=0)
    control.stop = bool(verdict.item())


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    control = SimpleNamespace(main=dist.get_rank() == 0, stop=False)
    callbacks = [StopWhenGood(0.05)]
    for _ in range(50):
        x = torch.randn(16, 3)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for callback in callbacks:
            callback.on_step_end(control, loss.item())
        share(control)
        if control.stop:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
