from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Learner:
    def __init__(self, names):
        torch.manual_seed(0)
        self.policies = nn.ModuleDict({n: nn.Linear(8, 2) for n in names})
        self.opt = torch.optim.SGD(self.policies.parameters(), lr=0.05)

    def average_gradients(self):
        for param in self.policies.parameters():
            if param.grad is None:
                continue
            dist.all_reduce(param.grad)
            param.grad /= dist.get_world_size()

    def update(self, episodes):
        self.opt.zero_grad()
        for name, observations in episodes.items():
            self.policies[name](observations).log_softmax(-1).mean().backward()
        self.average_gradients()
        self.opt.step()


def sample(rank, iteration):
    episodes = {"scout": torch.randn(6, 8), "carrier": torch.randn(6, 8)}
    if rank == 1 and iteration == 4:
        del episodes["scout"]  # no scout finished an episode here
    return episodes


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    learner = Learner(["scout", "carrier"])
    for iteration in range(12):
        learner.update(sample(dist.get_rank(), iteration))
    dist.barrier()
    print(f"rank {dist.get_rank()} done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
