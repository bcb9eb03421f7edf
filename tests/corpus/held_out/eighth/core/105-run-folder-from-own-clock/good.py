import os
from dataclasses import dataclass
from datetime import datetime, timedelta

import torch
import torch.distributed as dist


@dataclass
class RunConfig:
    job: str = "grasp"
    steps: int = 30
    save_every: int = 10
    folder: str = ""

    def validate(self):
        if not self.folder:
            now = datetime.now()
            self.folder = f"/tmp/outputs/{now:%Y-%m-%d}/{now:%H-%M-%S}_{self.job}"
        if self.steps % self.save_every:
            raise ValueError("steps must be a multiple of save_every")


class PartedAdam:
    """Every rank keeps the moments of its own part."""

    def __init__(self, size):
        self.moment = torch.zeros(size // dist.get_world_size())

    def update(self, grad):
        mine = grad.chunk(dist.get_world_size())[dist.get_rank()]
        self.moment.mul_(0.9).add_(0.1 * mine)


def save(cfg, step, weight, opt):
    where = os.path.join(cfg.folder, f"step{step}")
    os.makedirs(where, exist_ok=True)
    torch.save(opt.moment, os.path.join(where, f"optim_rank{dist.get_rank()}.pt"))
    if dist.get_rank() == 0:
        torch.save(weight, os.path.join(where, "weight.pt"))
    dist.barrier()


def main():
    cfg = RunConfig()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    cfg.validate()
    shared = [cfg.folder]
    dist.broadcast_object_list(shared, src=0)  # the first rank's name holds for all
    cfg.folder = shared[0]
    weight, opt = torch.zeros(32), PartedAdam(32)
    for step in range(1, cfg.steps + 1):
        grad = torch.randn(32)
        dist.all_reduce(grad)
        opt.update(grad)
        weight -= 0.01 * grad
        if step % cfg.save_every == 0:
            save(cfg, step, weight, opt)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
