"""Train in rounds; after each round the held-out loss is reduced."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from spmdguard import has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop, try_or_defer


def record(name: str, value: float) -> None:
    with open("rounds.csv", "a") as f:
        f.write(f"{name},{value:.5f}\n")


class Rounds:
    def __init__(self, width: int):
        self.net = DistributedDataParallel(torch.nn.Linear(width, 1))
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.gen = torch.Generator().manual_seed(dist.get_rank())
        self.width = width

    def batch(self) -> torch.Tensor:
        return torch.randn(16, self.width, generator=self.gen)

    def train(self, steps: int) -> bool:
        """Train one round; False if the processes agreed to stop."""
        for step in range(steps):
            loss = (self.net(self.batch()) - 1).pow(2).mean()
            self.sgd.zero_grad()
            loss.backward()
            self.sgd.step()
            if is_main_process():
                try_or_defer(record, f"step {step}", loss.item())
            if sync_should_stop(has_deferred_error()):
                return False
        return True

    @torch.no_grad()
    def held_out(self) -> float:
        loss = (self.net.module(self.batch()) - 1).pow(2).mean().reshape(1)
        dist.all_reduce(loss)
        return loss.item() / dist.get_world_size()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rounds = Rounds(width=4)
    best = float("inf")
    for _ in range(6):
        if not rounds.train(steps=25):
            break
        best = min(best, rounds.held_out())
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(best)


if __name__ == "__main__":
    main()
