"""Loss-scaled updates of a model whose stages live on different processes."""
from __future__ import annotations

from datetime import timedelta

import torch
import torch.distributed as dist


class ScaledStage:
    def __init__(self, stage: torch.nn.Module, rate: float = 0.05, ceiling: float = 1.0):
        self.stage, self.rate, self.ceiling = stage, rate, ceiling
        self.scale = 2.0 ** 12

    def grads(self):
        return [p.grad for p in self.stage.parameters()]

    def overflowed(self) -> bool:
        return any(not torch.isfinite(g).all() for g in self.grads())

    def whole_norm(self) -> float:
        total = sum(g.pow(2).sum() for g in self.grads()).reshape(1)
        dist.all_reduce(total)
        return total.sqrt().item() / self.scale

    def update(self) -> bool:
        found = torch.tensor([float(self.overflowed())])
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        if found.item() > 0:
            self.scale /= 2
            return False
        factor = min(1.0, self.ceiling / (self.whole_norm() + 1e-6))
        with torch.no_grad():
            for p in self.stage.parameters():
                p -= self.rate * factor * p.grad / self.scale
        return True


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    torch.manual_seed(dist.get_rank())
    part = ScaledStage(torch.nn.Linear(12, 12))
    done = 0
    for _ in range(20):
        part.stage.zero_grad()
        loss = part.stage(torch.randn(4, 12)).pow(2).mean()
        (loss * part.scale).backward()
        done += part.update()
    print(f"stage {dist.get_rank()}: {done} updates, scale {part.scale}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
