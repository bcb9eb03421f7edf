"""Stop when the activations of a layer run away."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Alarm:
    def __init__(self, limit: float):
        self.limit = limit
        self.peak = 0.0

    def __call__(self, module, inputs, output):
        self.peak = output.detach().abs().max().item()

    def rings(self) -> bool:
        """Whether it does on any process."""
        highest = torch.tensor([self.peak])
        dist.all_reduce(highest, op=dist.ReduceOp.MAX)
        return highest.item() > self.limit


def fit(alarm: Alarm, steps: int) -> int:
    net = torch.nn.Linear(8, 8)
    net.register_forward_hook(alarm)
    model = DistributedDataParallel(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.4)
    gen = torch.Generator().manual_seed(dist.get_rank())
    done = 0
    for done in range(steps):
        opt.zero_grad()
        loss = model(3 * torch.randn(4, 8, generator=gen)).pow(2).mean()
        if alarm.rings():
            print("stopped by the alarm:", alarm.peak)
            break
        loss.backward()
        opt.step()
    return done


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    done = fit(Alarm(limit=9.0), steps=50)
    dist.barrier()
    dist.destroy_process_group()
    print(done)


if __name__ == "__main__":
    main()
